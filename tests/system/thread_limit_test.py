"""Processes that may have few threads or little address space end with a message, never by a signal."""
import resource
import subprocess
import unittest

from program import BINARY, BUNDLED, IS_SANITIZED, environment

STEP_MIB = 8  # the stack of a thread
SECONDS = 60


def ends(mib, *arguments):
    """Exit code and standard error under a limit of address space, in which threads' stacks count."""
    limit = (mib << 20, mib << 20)
    done = subprocess.run([BINARY, *map(str, arguments)], input=b"", capture_output=True, timeout=SECONDS,
                          env=environment(), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit))
    return done.returncode, done.stderr.decode()


@unittest.skipIf(IS_SANITIZED, "sanitizers reserve address space of their own")
class ThreadLimitTest(unittest.TestCase):
    def check(self, *arguments):
        refused = set()
        for mib in range(5 * STEP_MIB, 25 * STEP_MIB, STEP_MIB):
            code, errors = ends(mib, *arguments)
            with self.subTest(mib=mib, errors=errors):
                self.assertIn(code, (0, 1))
                if code:
                    self.assertTrue(errors.splitlines()[-1].startswith("paceline: "))
                if "thread" in errors:
                    refused.add(errors.splitlines()[-1])
        self.assertTrue(refused, "no limit met the start of a thread")
        self.assertTrue(any("ulimit -u" in line for line in refused), refused)

    def test_a_command_whose_threads_are_refused(self):
        self.check("generate", "-m", BUNDLED, "-p", "x", "-n", "1", "-t", "8")

    def test_a_server_whose_threads_are_refused(self):
        self.check("serve", "-m", BUNDLED, "--port", "0", "-t", "2", "--tls-cert", "/dev/null", "--tls-key", "/dev/null")


if __name__ == "__main__":
    unittest.main()
