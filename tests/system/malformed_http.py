"""Malformed and borderline requests as bytes, each with its expected answers; made from a seed."""
import random

SEED = 20261122
MOST_URI = MOST_LINE = 8 << 10
MOST_HEADER = 16 << 10
MOST_FIELDS = 100
MOST_BODY = 8 << 20

BODY = b'{"prompt": "x", "max_tokens": 1}'
SMUGGLED = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nx-request-id: smuggled\r\nConnection: close\r\n\r\n"


class Case:
    """The bytes, and the statuses of the answers; the connection is closed behind the last one."""

    def __init__(self, kind, data, *statuses, half_close=False):
        self.kind, self.data, self.statuses, self.half_close = kind, data, list(statuses), half_close

    def __repr__(self):
        return f"{self.kind}: {self.data[:300]!r} ({len(self.data)} bytes)"


def request(line=b"GET /health HTTP/1.1", fields=(b"Host: 127.0.0.1", b"Connection: close"), body=b"", end=b"\r\n"):
    return end.join([line, *fields, b"", b""]) + body


def post(*fields, body=BODY, length=True, line=b"POST /v1/completions HTTP/1.1"):
    all_fields = [b"Host: 127.0.0.1", b"Content-Type: application/json", b"Connection: close", *fields]
    if length:
        all_fields.append(b"Content-Length: %d" % len(body))
    return request(line, all_fields, body)


def chunked(body, *fields):
    return post(b"Transfer-Encoding: chunked", *fields, body=body, length=False)


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


WHOLE = chunk(BODY[:9]) + chunk(BODY[9:]) + b"0\r\n\r\n"


def two_lengths(choices):
    length = b"Content-Length: %d" % len(BODY)
    coding = b"Transfer-Encoding: " + choices.choice([b"chunked", b"Chunked", b"identity", b"gzip, chunked"])
    other = b"Content-Length: %d" % choices.choice([0, 1, len(BODY), 10**6])
    fields = choices.choice([[length, coding], [coding, length], [length, other], [coding, coding], [other, length, coding]])
    choices.shuffle(fields)
    return Case("two lengths", post(*fields, body=choices.choice([BODY, WHOLE]) + SMUGGLED, length=False), 400)


def coding(choices):
    value = choices.choice([b"gzip", b"identity", b"chunked, chunked", b"gzip, chunked", b"chunked, identity", b"xchunked",
                            b"chunked;q=1", b'"chunked"', b"", b"chunked,", b"chun ked"])
    return Case("transfer coding", post(b"Transfer-Encoding: " + value, body=WHOLE + SMUGGLED, length=False), 400)


def coding_of_1_0(choices):
    fields = [b"Transfer-Encoding: chunked", b"Content-Type: application/json"]
    return Case("chunks in HTTP/1.0", request(b"POST /v1/completions HTTP/1.0", fields, WHOLE), 400)


def length_value(choices):
    if choices.random() < 0.3:
        value = choices.choice([b"%d" % (MOST_BODY + 1), b"9999999999", b"18446744073709551615"])
        return Case("a great length", post(b"Content-Length: " + value, body=b"", length=False), 413)
    value = choices.choice([b"-1", b"+5", b"0x20", b"5,5", b"5 5", b"", b"1e3", b"5.0", b"\xef\xbc\x95", b"3;", b"five",
                            b"18446744073709551616", b"9" * 200])
    return Case("length value", post(b"Content-Length: " + value, body=BODY + SMUGGLED, length=False), 400)


def chunk_size(choices):
    if choices.random() < 0.2:
        size = choices.choice([b"900000", b"ffffffff", b"ffffffffffffffff", b"1" * 17])
        return Case("a great chunk", chunked(size + b"\r\nx"), 413)
    size = choices.choice([b"-1", b"+1", b"0x1", b"g", b"", b" 1", b"1 ", b"\t1", b"1_0", b"0" * 17, b"1\x00", b"\xff", b"1,1"])
    return Case("chunk size", chunked(chunk(BODY[:5]) + size + b"\r\nx\r\n0\r\n\r\n" + SMUGGLED), 400)


def chunk_frame(choices):
    body = choices.choice([
        b"5\nhello\r\n0\r\n\r\n", b"5\rhello\r\n0\r\n\r\n", b"5\r\nhello0\r\n\r\n", b"5\r\nhello\n0\r\n\r\n",
        b"5\r\nhelloo\r\n0\r\n\r\n", b"5;" + b"x" * 300 + b"\r\nhello\r\n", b"5;a\x01b\r\nhello\r\n0\r\n\r\n", b"5;a\nhello\r\n",
        b"0\r\nno colon\r\n\r\n", b"0\r\n: x\r\n\r\n", b"0\r\nA: \x00\r\n\r\n", b"0\r\nA: x\rB: y\r\n\r\n", b"0\r\n A: x\r\n\r\n"])
    return Case("chunk frame", chunked(body + SMUGGLED), 400)


def long_trailer(choices):
    lines = b"".join(b"X-%d: %s\r\n" % (i, b"y" * 1000) for i in range(20))
    return Case("long trailer", chunked(chunk(BODY) + b"0\r\n" + lines + b"\r\n"), 431)


def folded(choices):
    value = choices.choice([b"X-A: 1\r\n 2", b"X-A: 1\r\n\t2", b"X-A:\r\n 1", b" X-A: 1"])
    place = choices.randrange(3)
    fields = [b"Host: 127.0.0.1", b"Connection: close"]
    fields.insert(place, value)
    return Case("folded", request(fields=fields), 400)


def control(choices):
    byte = bytes([choices.choice([0, 1, 7, 8, 11, 12, 14, 27, 31, 127])])
    where = choices.randrange(4)
    if where == 0:
        return Case("control in target", request(b"GET /hea" + byte + b"lth HTTP/1.1"), 400)
    field = [b"X-" + byte + b"A: 1", b"X-A: 1" + byte, byte + b"X-A: 1"][where - 1]
    return Case("control in header", request(fields=[b"Host: 127.0.0.1", field, b"Connection: close"]), 400)


def line_end(choices):
    good = request(fields=[b"Host: 127.0.0.1", b"X-A: 1", b"Connection: close"])
    ends = [i for i in range(len(good)) if good[i:i + 2] == b"\r\n"]
    at = choices.choice(ends[:-1])
    return Case("line end", good[:at] + choices.choice([b"\n", b"\r", b"\r\r\n", b"\n\r\n"]) + good[at + 2:], 400)


def all_line_feeds(choices):
    return Case("line feeds alone", request(end=b"\n"), 400)


def field_name(choices):
    field = choices.choice([b"X A: 1", b"X-A : 1", b"(X): 1", b": 1", b"X-A", b"X\xe9: 1", b"X@: 1", b"X[]: 1", b"\"X\": 1",
                            b"=: 1", b"X-A\t: 1"])
    return Case("field name", request(fields=[b"Host: 127.0.0.1", field, b"Connection: close"]), 400)


def host(choices):
    fields = choices.choice([[], [b"Host: 127.0.0.1", b"Host: 127.0.0.1"], [b"Host: 127.0.0.1", b"host: evil"]])
    return Case("host", request(fields=[*fields, b"Connection: close"]), 400)


def strange_host(choices):
    name = choices.choice([b"evil.example", b"127.0.0.1.evil.example", b"localhost.evil", b"0.0.0.0", b"user@127.0.0.1"])
    return Case("another host", request(fields=[b"Host: " + name]), 403)


def too_long(choices):
    more = choices.choice([1, 100, 50000])
    which = choices.randrange(4)
    if which == 0:
        return Case("long target", request(b"GET /" + b"a" * (MOST_URI - 1 + more) + b" HTTP/1.1"), 414)
    if which == 1:
        return Case("long line", request(fields=[b"Host: 127.0.0.1", b"X-A: " + b"a" * (MOST_LINE - 5 + more)]), 431)
    if which == 2:
        fields = [b"X-%d: 1" % i for i in range(MOST_FIELDS + min(more, 500))]
        return Case("many fields", request(fields=[b"Host: 127.0.0.1", *fields]), 431)
    fields = [b"X-%d: %s" % (i, b"a" * 1020) for i in range(MOST_HEADER // 1024 + min(more, 50))]
    return Case("long header", request(fields=[b"Host: 127.0.0.1", *fields]), 431)


def just_fits(choices):
    if choices.random() < 0.5:
        return Case("longest target", request(b"GET /" + b"a" * (MOST_URI - 1) + b" HTTP/1.1"), 404)
    fields = [b"X-%d: 1" % i for i in range(MOST_FIELDS - 2)]
    return Case("most fields", request(fields=[b"Host: 127.0.0.1", b"Connection: close", *fields]), 200)


def version(choices):
    text = choices.choice([b"HTTP/2.0", b"HTTP/0.9", b"HTTP/3.0", b"http/1.1", b"HTTP/1.", b"HTTP/1.10", b"HTTP/11", b"HTTP",
                           b"HTTQ/1.1", b"HTTP/1,1", b"HTTP/a.b", b""])
    return Case("version", request(b"GET /health " + text), 400)


def request_line(choices):
    line = choices.choice([b"GET  /health HTTP/1.1", b" GET /health HTTP/1.1", b"GET /health HTTP/1.1 ", b"GET /health",
                           b"GET", b"/health HTTP/1.1", b"GET\t/health\tHTTP/1.1", b"GET /he alth HTTP/1.1",
                           b"G@T /health HTTP/1.1", b"G\xc3\xa9T /health HTTP/1.1", b"X" * 40 + b" /health HTTP/1.1",
                           b"GET /h\xc3\xa9alth HTTP/1.1", b"GET:/health HTTP/1.1"])
    return Case("request line", request(line), 400)


def method(choices):
    name = choices.choice([b"FOO", b"get", b"DELETE", b"PUT", b"TRACE", b"PATCH", b"POST", b"X-Y_Z!"])
    return Case("method", request(name + b" /health HTTP/1.1"), 405)


def target(choices):
    if choices.random() < 0.3:
        text, status = choices.choice([(b"http://127.0.0.1/health", 200), (b"*", 404), (b"//health", 404),
                                       (b"/health?a=%zz", 200), (b"/%68ealth", 200), (b"/health/", 404),
                                       (b"/health/../health", 404), (b"/%2e%2e/etc/passwd", 404)])
        return Case("strange target", request(b"GET " + text + b" HTTP/1.1"), status)
    text = choices.choice([b"/%zz", b"/%", b"/%0", b"/%00", b"/%ff", b"/a%0d%0aB", b"health", b"/health#x", b"/%c0%af",
                           b"/%ed%a0%80", b"?x", b"ftp://127.0.0.1/", b"127.0.0.1:80", b"/%7f"])
    return Case("target", request(b"GET " + text + b" HTTP/1.1"), 400)


def noise(choices):
    data = bytes([choices.choice([0, 1, 0x16, 0x80, 0xff])]) + choices.randbytes(choices.randrange(1, 400))
    return Case("noise", data + b"\r\n\r\n", 400)


def other_protocol(choices):
    data = choices.choice([b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 64, b"SSH-2.0-OpenSSH_9.2\r\n",
                           b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x05\x01\x00\r\n", b"EHLO x\r\n", b"*1\r\n$4\r\nPING\r\n"])
    return Case("another protocol", data, 400)


def flipped(choices):
    """One byte of the method or of the version is none of HTTP's."""
    good = bytearray(request())
    at = choices.choice([0, 1, 2, 13, 14, 15, 16, 17])
    good[at] = choices.choice(b"\x00\x1f\"(),;<=>?@[]{}\x7f\x80")
    return Case("flipped", bytes(good), 400)


def pipelined(choices):
    count = choices.randrange(2, 9)
    one = request(fields=[b"Host: 127.0.0.1"])
    return Case("pipelined", one * (count - 1) + request(), *[200] * count)


def pipelined_then_bad(choices):
    count = choices.randrange(1, 5)
    bad = choices.choice([two_lengths, folded, control, line_end, field_name, host, version, request_line])(choices)
    good = [request(fields=[b"Host: 127.0.0.1"]), post(length=True).replace(b"Connection: close\r\n", b"")]
    return Case(f"pipelined, then {bad.kind}", b"".join(choices.choice(good) for _ in range(count)) + bad.data + SMUGGLED,
                *[200] * count, *bad.statuses)


def in_the_body(choices):
    """A request within a body is text."""
    return Case("request in a body", post(body=b'{"prompt": "x", "max_tokens": 1, "user": "' +
                                          SMUGGLED.replace(b"\r\n", b"\\r\\n") + b'"}'), 200)


def whole_chunks(choices):
    body, at = b"", 0
    while at < len(BODY):
        size = choices.randrange(1, 12)
        body += chunk(BODY[at:at + size])
        at += size
    return Case("chunks", chunked(body + b"0\r\n" + choices.choice([b"", b"X-A: 1\r\n"]) + b"\r\n"), 200)


def no_media_type(choices):
    value = choices.choice([b"text/plain", b"application/x-www-form-urlencoded", b"multipart/form-data", b"application/jsonx"])
    # As a page sends it: the body of a form that names no page is taken.
    data = post().replace(b"Content-Type: application/json", b"Origin: null\r\nContent-Type: " + value)
    return Case("media type", data, 415)


def cut(choices):
    """The client sends less than it announced, and then nothing."""
    good = post()
    return Case("cut", good[:choices.randrange(1, len(good) - 1)], half_close=True)


KINDS = [two_lengths, two_lengths, coding, coding_of_1_0, length_value, chunk_size, chunk_size, chunk_frame, long_trailer, folded,
         control, control, line_end, line_end, all_line_feeds, field_name, host, strange_host, too_long, just_fits, version,
         request_line, method, target, noise, other_protocol, flipped, pipelined, pipelined_then_bad, pipelined_then_bad,
         in_the_body, whole_chunks, no_media_type, cut]


def cases(count):
    choices = random.Random(SEED)
    for index in range(count):
        yield KINDS[index % len(KINDS)](choices)
