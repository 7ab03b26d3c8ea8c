"""deploy/systemd: systemd accepts the unit, and the server behaves as the unit states."""
import re
import shutil
import subprocess
import tomllib
import unittest

from proxies import ROOT
from program import BINARY, ProgramTest, run
from serving import Client, Server

FOLDER = ROOT / "deploy/systemd"
UNIT = (FOLDER / "paceline.service").read_text()


def setting(name):
    """The only value of a setting of the unit."""
    [value] = re.findall(rf"^{name}=(.*)$", UNIT, re.MULTILINE)
    return value


class ServiceTest(ProgramTest):
    def test_systemd_reads_the_unit(self):
        program = shutil.which("systemd-analyze")
        if program is None:
            self.skipTest("systemd-analyze isn't there (Debian's systemd has it)")
        # The program needn't be installed for this.
        unit = self.write("paceline.service", UNIT.replace("/usr/local/bin/paceline", str(BINARY)))
        done = subprocess.run([program, "verify", "--man=no", unit], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = subprocess.run([program, "security", "--offline=true", "--threshold=20", unit], capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_it_is_stopped_after_its_drain(self):
        self.assertEqual((setting("Type"), setting("Restart")), ("notify", "on-failure"))
        text = run("serve", "--help-all").stdout
        [drain] = re.findall(r"--drain-timeout S\s[^\[]*\[(\d+)\]", text)
        [delay] = re.findall(r"--drain-delay S\s[^\[]*\[(\d+)\]", text)
        self.assertGreater(int(setting("TimeoutStopSec").rstrip("s")), int(drain) + int(delay))

    def test_the_environment_file_has_options(self):
        options = set(re.findall(r"--([a-z][a-z-]+)", run("serve", "--help-all").stdout))
        names = re.findall(r"^#?PACELINE_([A-Z_]+)=", (FOLDER / "paceline.env").read_text(), re.MULTILINE)
        self.assertGreater(len(names), 4)
        for name in names:
            self.assertIn(name.lower().replace("_", "-"), options)

    def test_the_command_asks_for_the_keys_of_the_credential(self):
        keys = FOLDER / "keys.toml"
        [key] = tomllib.loads(keys.read_text())["serve"]["api_key"]
        self.assertEqual(setting("ExecStart"), "/usr/local/bin/paceline serve --config %d/keys.toml")
        server = Server("--config", keys)
        self.addCleanup(server.stop)
        self.assertEqual(Client(server.port).get("/v1/models").status, 401)
        self.assertEqual(Client(server.port, key).get("/v1/models").status, 200)


if __name__ == "__main__":
    unittest.main()
