"""A client on a bare socket that can stop anywhere and disconnect in any way."""
import json
import socket
import ssl
import struct
import time

from pacing import TIMEOUT, script

HOST = "127.0.0.1"


def completion(prompt, max_tokens, **fields):
    """The request's header and its body."""
    body = json.dumps({"prompt": prompt, "max_tokens": max_tokens, "temperature": 0, "ignore_eos": True, "stream": True,
                       "return_token_ids": True, **fields}).encode()
    head = (f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode()
    return head, body


def dechunk(data):
    """The content of the chunks received so far, and whether the last one was received."""
    pieces, at = [], 0
    while (end := data.find(b"\r\n", at)) >= 0:
        count, begin = int(data[at:end], 16), end + 2
        if count == 0:
            return b"".join(pieces), data.startswith(b"\r\n", begin)
        pieces.append(data[begin:begin + count])
        at = begin + count + 2
    return b"".join(pieces), False


class Peer:
    def __init__(self, port, tls=None, receive_buffer=None):
        plain = socket.socket()
        plain.settimeout(TIMEOUT)
        if receive_buffer is not None:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        plain.connect((HOST, port))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream = plain if tls is None else tls.wrap_socket(plain)
        self.data = b""
        self.is_cut = False  # the server has ended the connection

    def send(self, *pieces):
        self.stream.sendall(b"".join(pieces))

    def ask(self, prompt, max_tokens, **fields):
        self.prompt, self.max_tokens = prompt, max_tokens
        self.send(*completion(prompt, max_tokens, **fields))
        return self

    def receive(self, count=65536):
        try:
            piece = self.stream.recv(count)
        except (ConnectionError, ssl.SSLError):
            piece = b""
        self.data += piece
        self.is_cut = self.is_cut or piece == b""
        return not self.is_cut

    def read_until(self, condition, count=65536):
        """Reads at most `count` bytes at a time until the condition is true or nothing comes; returns whether it is."""
        while not condition() and self.receive(count):
            pass
        return condition()

    @property
    def status(self):
        return int(self.data[9:12]) if len(self.data) >= 12 else 0

    def body(self):
        head, _, rest = self.data.partition(b"\r\n\r\n")
        if b"transfer-encoding: chunked" in head.lower():
            return dechunk(rest)
        length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")),
                      None)
        return rest, length is not None and len(rest) >= length

    def is_whole(self):
        return self.body()[1]

    def events(self):
        return [event.removeprefix(b"data: ") for event in self.body()[0].split(b"\n\n")[:-1] if event.startswith(b"data: ")]

    def tokens(self, index=0):
        return [token for event in self.events() if event != b"[DONE]" for choice in json.loads(event).get("choices", [])
                if choice["index"] == index for token in choice.get("token_ids", [])]

    def read_tokens(self, count):
        return self.read_until(lambda: len(self.tokens()) >= count)

    def read_all(self):
        self.read_until(self.is_whole)
        return self

    def problem(self):
        """The fault of a stream as far as received; None when it has none."""
        said, must = self.tokens(), script(self.prompt, self.max_tokens)
        if said != must[:len(said)]:
            return f"{said}, expected {must}"
        if b"[DONE]" in self.events() and len(said) != self.max_tokens:
            return f"[DONE] behind {len(said)} of {self.max_tokens} tokens"
        return None

    def is_complete(self):
        return self.is_whole() and b"[DONE]" in self.events()[-1:] and self.problem() is None

    # Ways to leave.

    def fin(self):
        """Closes with nothing left unread, which would make it a reset."""
        self.stream.setblocking(False)
        try:
            while self.stream.recv(65536):
                pass
        except OSError:
            pass
        self.stream.close()

    def rst(self):
        self.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.stream.close()

    def half_close(self):
        """Says that nothing more will be sent, and reads to the end."""
        socket.socket.shutdown(self.stream, socket.SHUT_WR)
        until = time.monotonic() + TIMEOUT
        while self.receive() and time.monotonic() < until:
            pass
        self.close()

    def close(self):
        self.stream.close()
