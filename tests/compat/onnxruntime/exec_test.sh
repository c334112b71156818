# The environment that `troupe exec` gives a program, and its error where there is no program.  sh exec_test.sh TROUPE
set -eu
troupe=$1
seen=$(LD_LIBRARY_PATH=/before "$troupe" exec --devices cpu --policy heft -- \
  sh -c 'echo "$TROUPE_DEVICES $TROUPE_POLICY ${TROUPE_HOSTS-none} $LD_PRELOAD $LD_LIBRARY_PATH"; echo "$1"' \
  name 'an argument')
case $seen in
"cpu heft none libonnxruntime.so:libonnxruntime.so.1:"*":libonnxruntime.so.1.21:"*"/troupe/onnxruntime:/before
an argument") ;;
*) echo "the program saw: $seen" >&2 && exit 1 ;;
esac
status=0
said=$("$troupe" exec -- /no/such/program 2>&1) || status=$?
[ "$status" = 1 ] && [ "$said" = "troupe: /no/such/program cannot be started: No such file or directory" ] ||
  { echo "status $status: $said" >&2; exit 1; }
# A program's own status is the command's.
"$troupe" exec -- sh -c 'exit 7' && exit 1 || [ $? = 7 ]
