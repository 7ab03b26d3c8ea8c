"""`--stop-with-parent` and `--error-codes`: what a program that starts this one needs."""
import subprocess
import unittest

from program import BINARY, BUNDLED, TIMEOUT, ProgramTest, environment


class ParentTest(ProgramTest):
    def start(self, **options):
        return subprocess.Popen([BINARY, "serve", "-m", BUNDLED, "--port", "0", "--threads", "1", "--stop-with-parent"], text=True,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment(), **options)

    def test_a_server_ends_with_its_standard_input(self):
        server = self.start(stdin=subprocess.PIPE)
        server.stdin.write("ignored\n")
        server.stdin.flush()
        while not server.stderr.readline().startswith("listening on "):
            self.assertIsNone(server.poll())
        server.stdin.close()
        with server.stderr:
            self.assertEqual(server.wait(TIMEOUT), 0)

    def test_a_standard_input_that_says_nothing_is_refused(self):
        server = self.start(stdin=subprocess.DEVNULL)
        self.assertRegex(server.communicate(timeout=TIMEOUT)[1], "^paceline: --stop-with-parent: standard input is no pipe")
        self.assertEqual(server.returncode, 1)

    def test_errors_begin_with_their_code(self):
        for arguments, exit_code, code, says in [(["generate", "-m", "/nowhere", "-p", "x"], 1, "not_found", "model /nowhere"),
                                                 (["generate", "-m", BUNDLED, "--prompt-ids", "99999999"], 1, "invalid", "99999999"),
                                                 (["decide", "-m", BUNDLED, "-p", "x"], 2, "invalid", "no questions")]:
            without = self.fail_with(exit_code, *arguments, "-q")
            self.assertIn(says, without)
            self.assertEqual(self.fail_with(exit_code, *arguments, "-q", "--error-codes"),
                             without.replace("paceline: ", f"paceline: {code}: ", 1))


if __name__ == "__main__":
    unittest.main()
