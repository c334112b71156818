"""One program of onnxruntime-node, unchanged, on a GPU that is opened twice and on a worker of another process, over
TLS: the environment alone says so. Its answer must be that of its own library, and its profile must show that each
device ran nodes.

usage: devices.py BUILD_FOLDER
exit status 77: npm does not give the package, or this machine has no GPU (a software one does)
"""
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile

from packages import checked, install
from programs import HERE, NUMBER, output, skip

MODEL = HERE.parents[3] / "examples/digits/digits.onnx"
DEVICES = {"vulkan:0", "vulkan:0#1", "far/cpu"}  # as profiles name them
MOST = 1e-3  # that a score may differ; the largest are above 100


def has_gpu(troupe):
    return subprocess.run([troupe, "devices", "--devices", "vulkan:0"], capture_output=True).returncode == 0


@contextlib.contextmanager
def worker(troupe, folder):
    """Starts a worker on the loopback; yields what the environment says of it."""
    subprocess.run([troupe, "keys", folder, "far", "here"], check=True, stdout=subprocess.DEVNULL)
    files = lambda name: {"tls_cert": folder / f"{name}.crt", "tls_key": folder / f"{name}.key",
                          "tls_ca": folder / "ca.crt"}
    keys = [str(word) for key, file in files("far").items() for word in ("--" + key.replace("_", "-"), file)]
    running = subprocess.Popen([troupe, "worker", "--listen", "127.0.0.1:0", "--devices", "cpu", "--weights",
                                folder / "weights", *keys], stdout=subprocess.PIPE, text=True)
    try:
        line = running.stdout.readline()
        if not line:
            sys.exit("the worker does not start")
        address = json.loads(line)["at"]
        yield {"TROUPE_HOSTS": f"far={address}"} | {f"TROUPE_{key.upper()}": str(file)
                                                    for key, file in files("here").items()}
    finally:
        running.kill()
        running.wait()


def run(command, environment=None):
    said, _ = output(command, environment)
    return [float(number) for number in NUMBER.findall(said)]


def devices_of(profile):
    """Returns the devices that ran nodes, by a profile of troupe's."""
    events = json.loads(profile.read_text())
    lanes = {(event["pid"], event["tid"]): event["args"]["lane"] for event in events
             if event["name"] == "thread_name"}
    return {lanes[event["pid"], event["tid"]] for event in events if event.get("cat") == "node"}


def main():
    build = pathlib.Path(sys.argv[1])
    troupe = build / "bin/troupe"
    if not has_gpu(troupe):
        skip("there is no GPU")
    packages = install(build, "onnxruntime-node@1.30.0")
    with tempfile.TemporaryDirectory() as name, worker(troupe, pathlib.Path(name)) as hosts:
        folder = pathlib.Path(name)
        program = ["node", HERE / "digits.mjs", packages, MODEL]
        own = run([*program, folder / "own"])
        how = {"TROUPE_DEVICES": "vulkan:0*2,far/cpu", "TROUPE_POLICY": "round-robin"}
        ours = run([troupe, "exec", "--", *program, folder / "ours"], checked() | hosts | how)
        [profile] = folder.glob("ours*.json")
        used = devices_of(profile)
    worst = max(abs(a - b) for a, b in zip(own, ours, strict=True))
    print(f"{len(ours)} scores, at most {worst:.4f} from those of its own library; nodes ran on", *sorted(used))
    sys.exit(0 if worst <= MOST and used == DEVICES else 1)


if __name__ == "__main__":
    main()
