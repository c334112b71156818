# Sourced by the scripts beside it: messages, packages, quiet builds with progress.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
shared=$root/../shared

# Vulkan's validation layer looks for hazards between submissions only where it is asked to, by this name.
export VK_LAYER_ENABLES=VALIDATION_CHECK_ENABLE_SYNCHRONIZATION_VALIDATION_QUEUE_SUBMIT

# Linux counts a CPU's ticks that went to programs which the script started and waited for (proc(5): the sixteenth field
# in user mode, the seventeenth in the kernel).
cpu_seconds() {
  local stat
  read -ra stat <"/proc/$$/stat"
  echo $(((stat[15] + stat[16]) / $(getconf CLK_TCK)))
}
# Bash counts the seconds since the script began.
say_time() {
  end_part
  say "$(basename "$0"): $SECONDS s, $(cpu_seconds) s of a CPU${part_times:+:$part_times}"
}
# Says that a part of the script begins; `say_time` says in the end how long each took.
begin_part() {
  end_part
  part=$1 part_begin=$SECONDS part_cpu=$(cpu_seconds)
  say "$part"
}
end_part() {
  [ -n "${part:-}" ] || return 0
  part_times+=$'\n'"   $part: $((SECONDS - part_begin)) s, $(($(cpu_seconds) - part_cpu)) s of a CPU"
  part=
}
say() { printf '\033[1m== %s\033[0m\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# Installs the Debian packages that are missing, those named beside packages.txt too; does nothing, quickly, when all
# are there.
install_packages() {
  local missing=() package
  if ! command -v dpkg-query >/dev/null; then
    say "not a Debian system: install what scripts/packages.txt lists yourself"
    return
  fi
  while read -r package; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done < <(grep -v '^#' "$root/scripts/packages.txt"; [ $# -eq 0 ] || printf '%s\n' "$@")
  [ ${#missing[@]} -eq 0 ] && return
  say "installing ${#missing[@]} packages: ${missing[*]}"
  local sudo=() log
  [ "$(id -u)" -eq 0 ] || sudo=(sudo)
  export DEBIAN_FRONTEND=noninteractive
  log=$(mktemp)
  { "${sudo[@]}" apt-get -q update &&
    "${sudo[@]}" apt-get -qy --no-install-recommends install "${missing[@]}"; } >"$log" 2>&1 ||
    { tail -n 20 "$log" >&2; die "the packages could not be installed"; }
  rm -f "$log"
}

# Builds a preset (what follows goes to `cmake --build`: --target NAME…); prints a line every tenth
# of the work, and the compiler's words only when it fails. TROUPE_WERROR=ON in the environment: a warning is an error.
build_preset() {
  local preset=$1 log=$root/build/$1.log
  shift
  mkdir -p "$root/build"
  cd "$root"
  say "building $preset"
  cmake --preset "$preset" -DTROUPE_WERROR="${TROUPE_WERROR:-OFF}" >"$log" 2>&1 ||
    { tail -n 30 "$log" >&2; die "configuring $preset failed"; }
  if ! cmake --build --preset "$preset" "$@" 2>&1 | tee -a "$log" | show_progress; then
    grep -vE '^\[[0-9]+/[0-9]+\]' "$log" | tail -n 60 >&2
    die "building $preset failed; the whole log is $log"
  fi
}

# Not awk: Debian's (mawk) waits for full buffers, and so shows nothing for minutes.
show_progress() {
  local line shown=0
  while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    local step=$((10 * BASH_REMATCH[1] / BASH_REMATCH[2]))
    [ $step -gt $shown ] && { shown=$step; echo "   $((10 * step)) % of ${BASH_REMATCH[2]} files"; }
  done
  return 0
}

# Prints the folder of a real architecture with its weights and a test case, which is made here if it is not there
# (../shared/models).
materialized() { # MODEL
  local folder=$root/build/models/$1
  if [ ! -f "$folder/.ready" ]; then
    /usr/bin/python3 "$shared/models/materialize" "$1" "$folder" >/dev/null
    touch "$folder/.ready"
  fi
  echo "$folder"
}

# The unit tests under AddressSanitizer and UndefinedBehaviorSanitizer, after `build_preset dev`; arguments go to
# Catch2.
test_dev() { LSAN_OPTIONS="suppressions=$root/tests/lsan.supp" "$root/build/dev/bin/troupe_tests" "$@"; }

# Planner, caches and the coordinator's state machine under ThreadSanitizer, after `build_preset tsan`. libcaf, libgomp
# and GPU drivers are not instrumented: only tests that run no threads of theirs.
test_tsan() {
  local files=(coordinator coordinator_time fetch session_plans planning device_ledger shared_memory host_block
    measure_nodes node_times profile_file)
  local tags="[plan]~[slow]~[vulkan]~[engine],[run]~[slow]$(printf ',[#%s_test]' "${files[@]}")"
  "$root/build/tsan/bin/troupe_tests" --filenames-as-tags "$tags"
}

# Kernels of the build for any processor, by each library level, after `build_preset generic`. glibc skips what the
# processor lacks.
test_levels() {
  test_level none SSE41 "[quantised],[ops],[engine]"
  test_level x86-64-v3 AVX2 "[cpu],[ops],[engine]"
  test_level x86-64-v4 AVX512_CORE "[cpu],[ops],[engine]"
  test_level x86-64-v4 ALL "[cpu],[ops],[engine]"
}

# test_level LIBRARY LIMIT TAGS: the library's level for glibc, the limit for kernels that choose when they run.
test_level() {
  say "kernels of the build for any processor, library level $1, at most $2"
  DNNL_MAX_CPU_ISA=$2 /lib64/ld-linux-x86-64.so.2 --glibc-hwcaps-mask "$1" "$root/build/generic/bin/troupe_tests" "$3"
}
