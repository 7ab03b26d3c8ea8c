"""The proxies of deploy/, as an unprivileged user in front of replicas of `paceline serve`."""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "system"))
from serving import until  # noqa: E402

# Of the shipped files.
FRONT = "0.0.0.0:8000"
REPLICAS = ("127.0.0.1:8081", "127.0.0.1:8082")
NOBODY = "nobody"


def find_program(name):
    """Finds a server program: Debian installs them outside an ordinary user's PATH."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def moved(text, front_port, replica_ports):
    """A shipped configuration at other addresses; nothing else changes."""
    wanted = {FRONT: f"127.0.0.1:{front_port}",
              **{address: f"127.0.0.1:{port}" for address, port in zip(REPLICAS, replica_ports)}}
    for address, other in wanted.items():
        assert address in text, address
        text = text.replace(address, other)
    return text


def as_nobody():
    """Options for subprocess: root starts no proxy as root."""
    return {"user": NOBODY, "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}


class Proxy:
    """Answers at `port` until stop()."""

    def __init__(self, replica_ports):
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="paceline-proxy-"))
        self.output = open(self.folder / "output", "wb")
        self.child = None
        try:
            command = self.prepare(replica_ports)
            if os.geteuid() == 0:
                for path in [self.folder, *self.folder.iterdir()]:
                    shutil.chown(path, NOBODY)
            self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.output,
                                          stderr=subprocess.STDOUT, cwd=self.folder, **as_nobody())
            if not until(self.answers):
                raise RuntimeError(f"{command[0]} doesn't answer:\n{self.log()}")
        except BaseException:
            self.stop()
            raise

    def answers(self):
        if self.child.poll() is not None:
            raise RuntimeError(self.log())
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    def log(self):
        return (self.folder / "output").read_text(errors="replace")

    def stop(self):
        if self.child is not None and self.child.poll() is None:
            self.child.terminate()
            try:
                self.child.wait(10)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
        self.output.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class HaProxy(Proxy):
    name = "haproxy"
    # It polls /ready: a replica is removed and restored without a failing request.
    checks_health = True

    def prepare(self, replica_ports):
        text = (ROOT / "deploy/haproxy/haproxy.cfg").read_text()
        text = moved(text, self.port, replica_ports)
        # Only root can become another user; here it is one already.
        for line in ("    user haproxy\n", "    group haproxy\n"):
            assert line in text
            text = text.replace(line, "")
        path = self.folder / "haproxy.cfg"
        path.write_text(text)
        return [find_program("haproxy"), "-db", "-f", str(path)]


class Nginx(Proxy):
    name = "nginx"
    checks_health = False

    def prepare(self, replica_ports):
        text = (ROOT / "deploy/nginx/paceline.conf").read_text()
        (self.folder / "paceline.conf").write_text(moved(text, self.port, replica_ports))
        scratch = "".join(f"{kind}_temp_path {self.folder}/{kind};\n"
                          for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        path = self.folder / "nginx.conf"
        # Debian's nginx.conf around a file of /etc/nginx/conf.d, without the parts that need root.
        path.write_text(f"daemon off;\npid {self.folder}/pid;\nerror_log stderr;\n"
                        f"events {{ worker_connections 1024; }}\n"
                        f"http {{\naccess_log off;\n{scratch}include {self.folder}/paceline.conf;\n}}\n")
        return [find_program("nginx"), "-p", str(self.folder), "-e", "stderr", "-c", str(path)]


def timed_events(response):
    """(seconds since now, event) of a stream, as they come."""
    begin, event = time.monotonic(), []
    while line := response.readline():
        if line.strip():
            event.append(line)
        elif event:
            yield time.monotonic() - begin, b"".join(event).decode()
            event = []
