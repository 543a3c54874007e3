"""A peer that stays loaded in a process of its own: one JSON command a line in, one JSON answer a line (after "@@") out."""

import json
import os
import subprocess
import sys

ANSWER = "@@"


def peak_mib():
    """The highest resident memory this process has had."""
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    return 0.0


def serve(operations):
    """The worker's side: answers commands {"op": name, ...} with the result of operations[name](...)."""
    print(ANSWER + json.dumps({"ready": True, "peak_mib": peak_mib()}), flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        name = command.pop("op")
        if name == "quit":
            return
        try:
            answer = operations[name](**command)
        except Exception as error:  # reported to the driver, which decides
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(ANSWER + json.dumps({**answer, "peak_mib": peak_mib()}), flush=True)


class PeerProcess:
    """The driver's side. Use as a context manager."""

    def __init__(self, name, command, threads):
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": str(threads),
            "MKL_NUM_THREADS": str(threads),
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "PYTHONWARNINGS": "ignore",
        }
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def __enter__(self):
        self._read()
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            try:
                self.process.stdin.write('{"op": "quit"}\n')
                self.process.stdin.close()
                self.process.wait(30)
            except (OSError, subprocess.TimeoutExpired):
                self.process.kill()
                self.process.wait()

    def _read(self):
        for line in self.process.stdout:
            if line.startswith(ANSWER):
                return json.loads(line[len(ANSWER) :])
        raise SystemExit(f"{self.name} died; its messages stand above")

    def ask(self, operation, **arguments):
        """One command and its answer; an error in the worker ends the benchmark."""
        self.process.stdin.write(json.dumps({"op": operation, **arguments}) + "\n")
        self.process.stdin.flush()
        answer = self._read()
        if "error" in answer:
            raise SystemExit(f"{self.name}, {operation}: {answer['error']}")
        return answer
