"""A server of ours for a client's tests, with a key: started on a free port, told to end and waited for."""
import base64
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.environ.get('TRIPTYCH', os.path.join(ROOT, 'build/release/triptych'))
MODEL = os.path.join(ROOT, 'models/demo')
PICTURE = os.path.join(ROOT, 'tests/eval/demo/images/074.jpg')
QUESTION, ANSWER = 'What does the text say?', 'AHEW'


def picture_uri():
    with open(PICTURE, 'rb') as f:
        return 'data:image/jpeg;base64,' + base64.b64encode(f.read()).decode()


class Server:
    def __init__(self, *flags):
        made = subprocess.run([BINARY, 'key', 'tests'], capture_output=True, text=True, check=True)
        self.key = made.stdout.strip()
        self.keys = tempfile.NamedTemporaryFile('w', suffix='.keys')
        self.keys.write(made.stderr.splitlines()[-1] + '\n')
        self.keys.flush()
        command = [BINARY, 'serve', MODEL, '--port', '0', '--api-keys', self.keys.name, *flags]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        found = re.search(r'http://\S+', line)
        assert found, f'the server said: {line}'
        self.url = found.group() + '/v1'

    def stop(self):
        """The exit code: 0 when all answers in work have ended."""
        self.process.terminate()
        _, self.log = self.process.communicate(timeout=60)
        self.keys.close()
        return self.process.returncode


def main(command):
    """Runs a command with TRIPTYCH_URL and TRIPTYCH_KEY of a server that lasts as long as it."""
    server = Server('--alias', 'gpt-demo')
    try:
        code = subprocess.run(command, env=os.environ | {'TRIPTYCH_URL': server.url, 'TRIPTYCH_KEY': server.key}).returncode
    finally:
        ended = server.stop()
    return code or ended


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
