"""The server of the page's tests."""
import os
import subprocess
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("PACELINE_BINARY", ROOT / "build/release/paceline")).resolve()
MODEL = "models/paceline-10m"
LISTENING = "listening on "


class Server:
    """`paceline serve` with the bundled model; `url` is where it listens."""

    def __init__(self, *options, port=0):
        self.child = subprocess.Popen([BINARY, "serve", "-m", MODEL, "--port", str(port), *options], cwd=ROOT,
                                      stderr=subprocess.PIPE, text=True)
        self.url = None
        said = []
        for line in self.child.stderr:
            said.append(line)
            if LISTENING in line:
                self.url = line.split(LISTENING)[1].split()[0].rstrip("/")
                break
        if self.url is None:
            self.stop()
            raise RuntimeError(f"the server didn't start: {''.join(said)}")
        self.port = int(self.url.rsplit(":", 1)[1])
        self.reader = threading.Thread(target=self.child.stderr.read, daemon=True)  # its pipe must not fill up
        self.reader.start()

    def stop(self):
        if self.child.poll() is None:
            self.child.terminate()
        try:
            self.child.wait(30)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            raise
        finally:
            if self.url is not None:
                self.reader.join()
            self.child.stderr.close()
