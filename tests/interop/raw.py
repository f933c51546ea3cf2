#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Hand-built Rx datagrams and calls, as one who keeps no rule would send them.
#
#   raw.py call PORT SERVICE OP [HEX]     one anonymous call: prints "code N", or the reply in hex
#   raw.py amplify                        every service and packet type, from addresses that answer nothing
#   raw.py slow PORT SERVICE OP [HEX]     300 calls fed one byte a second, 300 never acknowledged, 300 never
#                                         answered; goes on until it is killed
#   raw.py garbage SEED SECONDS           altered packets of every kind to every port
#   raw.py padding                        the bytes of packets that carry nothing are zero
import os, random, resource, select, socket, struct, sys, time

HOST = os.environ.get('RAW_HOST', '127.0.0.1')  # asked from addresses of RAW_FROM.0.0/16
FROM = os.environ.get('RAW_FROM', '127.9')
DATA, BUSY, ABORT, ACK, CHALLENGE, RESPONSE, DEBUG, VERSION = 1, 3, 4, 2, 6, 7, 8, 13
FIRST, REQACK, LAST, MORE, JUMBO = 1, 2, 4, 8, 32
def host(port):  # cache-manager calls are for this machine alone
    return '127.0.0.1' if port == 7009 else HOST
SERVICES = [(7000, 1), (7001, 1), (7002, 73), (7002, 50), (7002, 51), (7003, 52), (7003, 50), (7003, 51), (7005, 4),
            (7009, 4)]
u32 = lambda *v: b''.join(struct.pack('>I', x & 0xffffffff) for x in v)
def text(s):
    s = s if isinstance(s, bytes) else s.encode()
    return u32(len(s)) + s + b'\0' * (-len(s) % 4)
def chars(s, n):  # a name with a word for each character
    s = s.encode() + b'\0' * (n - len(s))
    return u32(*s)

def header(epoch, cid, call, seq, serial, kind, flags, service, index=0, status=0):
    return struct.pack('>IIIIIBBBBHH', epoch, cid, call, seq, serial, kind, flags, status, index, 0, service)
def ack(first, prev, serial, reason, acks=b'', window=32):
    return struct.pack('>HHIIIBB', 0, 0, first, prev, serial, reason, len(acks)) + acks + b'\0\0\0' + u32(1444, 1444, window, 1)

class Conn:
    """One connection from a socket of its own."""
    def __init__(self, port, service):
        self.to, self.service = (host(port), port), service
        self.s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.s.bind((host(port), 0))
        self.epoch, self.cid = random.getrandbits(31) | 1 << 31, random.getrandbits(30) << 2
        self.call, self.serial = 0, 0
    def send(self, kind, flags, seq, body=b'', call=None):
        self.serial += 1
        p = header(self.epoch, self.cid, self.call if call is None else call, seq, self.serial, kind, flags, self.service) + body
        self.s.sendto(p, self.to)
        return len(p)
    def begin(self, body, last=True):
        """All of the arguments; the last piece without its flag when `last` is false."""
        self.call += 1
        pieces = [body[i:i + 1416] for i in range(0, len(body), 1416)] or [b'']
        for i, b in enumerate(pieces):
            end = i == len(pieces) - 1
            self.send(DATA, FIRST | (LAST | REQACK if end and last else 0), i + 1, b)
    def packets(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.s], [], [], left)[0]:
                p = self.s.recv(20000)
                if len(p) >= 28:
                    yield struct.unpack('>IIIIIBBBBHH', p[:28]) + (p[28:],)
    def finish(self, seconds=20):
        """The reply as bytes, or the abort code as a number."""
        got, last = {}, None
        for e, c, call, seq, serial, kind, flags, st, ix, ck, svc, body in self.packets(seconds):
            if kind == ABORT and (e, c) == (self.epoch, self.cid) and call in (0, self.call):
                return struct.unpack('>i', body[:4])[0]
            if (e, c) != (self.epoch, self.cid):
                if kind == DATA:  # the file server makes sure of a new host: one that knows only the old calls
                    old = body[:4] in (u32(205), u32(206))
                    self.s.sendto(header(e, c, call, 1, 1, DATA if old else ABORT, LAST if old else 0, svc) +
                                  (b'' if old else u32(-455)), self.to)
                continue
            if call != self.call:
                continue
            if kind == ACK and len(body) >= 18 and body[16] == 6:
                self.send(ACK, FIRST, 0, ack(max(got, default=0) + 1, max(got, default=0), serial, 7))
            if kind == DATA:
                got[seq] = body
                if flags & LAST:
                    last = seq
                n = 1
                while n in got:
                    n += 1
                self.send(ACK, FIRST, 0, ack(n, max(got), serial, 1 if flags & REQACK else 8))
                if last and n > last:
                    return b''.join(got[i] for i in range(1, last + 1))
        raise SystemExit('no answer')

def call(port, service, op, args=b''):
    c = Conn(port, service)
    c.begin(u32(op) + args)
    return c.finish()

def opcodes(port, service):
    if port == 7009:
        return range(1, 4)
    return {1: list(range(130, 165)) + list(range(65536, 65543)) + list(range(204, 216)),
            73: range(500, 535), 50: range(10000, 10010), 51: range(20000, 20016), 52: range(501, 540),
            4: list(range(100, 132)) + list(range(65537, 65541))}[service]

def arguments(service):
    """Arguments that fit the calls with the longest answers."""
    return {(52, 527): text('root.cell'), (52, 519): text('root.cell'), (52, 504): text('root.cell'),
            (52, 534): u32(0, 0, 0, 0, 0, 0) + text('') + u32(0), (52, 510): u32(0), (52, 521): u32(0),
            (4, 65539): text('/vicepa'), (4, 119): text('/vicepa'), (4, 124): u32(0, 1), (4, 116): u32(0, 1),
            (73, 508): u32(1001), (73, 512): u32(1001), (73, 505): u32(500) + u32(*range(500)),
            (73, 504): u32(3) + chars('alice', 64) + chars('bob', 64) + chars('admin', 64),
            (1, 65536): u32(50) + u32(536870912, 1, 1) * 50, (1, 155): u32(50) + u32(536870912, 1, 1) * 50,
            (1, 130): u32(536870912, 1, 1, 0, 1 << 20), (1, 131): u32(536870912, 1, 1), (1, 132): u32(536870912, 1, 1),
            (1, 65537): u32(536870912, 1, 1, 0, 0, 0, 1 << 20), (1, 149): u32(536870912), (1, 65542): u32(1 << 20),
            }

def amplify():
    cases, bad = [], 0
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
    src = 10
    def case(what, port, datagrams):
        nonlocal src
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind(('%s.%d.%d' % ('127.9' if port == 7009 else FROM, src >> 8, src & 255), 0))
        src += 1
        for d in datagrams:
            s.sendto(d, (host(port), port))
        s.setblocking(False)
        cases.append([what, s, sum(map(len, datagrams)), 0])
    rnd = lambda: (random.getrandbits(31) | 1 << 31, random.getrandbits(30) << 2)
    for port, service in SERVICES:
        known = arguments(service)
        for op in opcodes(port, service):
            body = u32(op) + known.get((service, op), u32(*[0] * 40))
            body = body[:1416]
            for index in (0, 2):
                case(f'{port}/{service} call {op} index {index}', port,
                     [header(*rnd(), 1, 1, 1, DATA, FIRST | LAST | REQACK, service, index) + body])
        body = u32(527 if service == 52 else 132) + text('root.cell')
        e, c = rnd()
        case(f'{port}/{service} a call sent ten times', port,
             [header(e, c, 1, 1, n, DATA, FIRST | LAST | REQACK, service) + body for n in range(1, 11)])
        for kind in range(0, 16 if port != 7009 else DEBUG):
            for body in (b'', u32(0, 0), u32(*[0] * 10), u32(*[1] * 100), ack(1, 0, 1, 6), ack(1, 0, 1, 1)):
                case(f'{port}/{service} type {kind} with {len(body)} bytes', port,
                     [header(*rnd(), 1, 1, 1, kind, FIRST | LAST | REQACK, service) + body])
        for what, index, svc in (('an unknown service', 0, 999), ('an index', 7, service), ('rxkad', 2, service), ('rxnull', 0, service)):
            case(f'{port}/{service} {what}, fifty connections', port,
                 [header(*rnd(), 1, 1, 1, DATA, FIRST | LAST | REQACK, svc, index) + u32(1) for _ in range(50)])
        for n in (0, 1, 4, 27, 28):
            case(f'{port} {n} zero bytes', port, [b'\0' * n])
    for port in sorted({p for p, _ in SERVICES} - {7009}):  # which is on the loopback network only
        for kind in range(0, 10):  # DEBUG: statistics, connections, peers, ...
            for i in range(0, 4):
                d = header(*rnd(), 0, 0, 1, DEBUG, FIRST, 0) + u32(kind, i)
                case(f'{port} debug {kind} {i}', port, [d])
                case(f'{port} debug {kind} {i} fifty times', port, [d] * 50)
        for n in (0, 65):
            d = header(*rnd(), 0, 0, 1, VERSION, FIRST, 0) + b'\0' * n
            case(f'{port} version', port, [d])
            case(f'{port} version fifty times', port, [d] * 50)
    end = time.monotonic() + 16
    by = {c[1].fileno(): c for c in cases}
    ready = select.epoll()
    for fd in by:
        ready.register(fd, select.EPOLLIN)
    while (left := end - time.monotonic()) > 0:
        for fd, _ in ready.poll(left):
            try:
                by[fd][3] += len(by[fd][1].recv(20000))
            except OSError:
                pass
    answered = 0
    for what, s, sent, got in cases:
        answered += got > 0
        if got > 3 * sent + 200:
            bad += 1
            print(f'{what}: {sent} bytes in, {got} bytes out')
    print(f'{len(cases)} cases, {answered} answered')
    return bad or answered < len(SERVICES)

def slow(port, service, op, args):
    fed, mute = [], []
    for i in range(300):
        c = Conn(port, service)
        c.call = 1
        c.send(DATA, FIRST, 1, u32(op)[:1 + i % 3])
        c.seq = 1
        fed.append(c)
    for i in range(300):
        c = Conn(port, service)
        c.begin(u32(op) + args)  # and never a word more
        mute.append(c)
    for i in range(300):
        c = Conn(port, service)
        c.begin(u32(op) + args, last=False)
        mute.append(c)
    print('begun', flush=True)
    while True:
        for c in fed:
            c.seq += 1
            c.send(DATA, FIRST, c.seq, b'\0')
        time.sleep(1)

def garbage(seed, seconds):
    r = random.Random(seed)
    end, n = time.monotonic() + seconds, 0
    socks = []
    for i in range(32):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind(('0.0.0.0', 0))
        s.setblocking(False)
        socks.append(s)
    ids = [(r.getrandbits(31) | 1 << 31, r.getrandbits(30) << 2) for _ in range(16)]
    while time.monotonic() < end:
        port, service = r.choice(SERVICES)
        s = r.choice(socks)
        e, c = r.choice(ids)
        kind = r.choice([DATA] * 8 + list(range(0, 15)))
        ops = list(opcodes(port, service))
        op = r.choice(ops)
        if kind == ACK:
            body = ack(r.choice([0, 1, 2, 1 << 31, 0xffffffff]), r.getrandbits(32), r.getrandbits(32), r.randrange(12),
                       bytes(r.randrange(3) for _ in range(r.choice([0, 1, 32, 255]))), r.choice([0, 1, 27, 1 << 31]))
        else:
            fit = arguments(service).get((service, op))
            body = u32(op) + (fit if fit and r.random() < .5 else
                b''.join(r.choice([u32(0), u32(1), u32(3), u32(0xffffffff), u32(1 << 31), u32(536870912), text('a'), r.randbytes(4)])
                         for _ in range(r.randrange(60))))
        p = bytearray(header(e, c + r.randrange(4), r.choice([0, 1, 2, 3, 1 << 31]), r.choice([0, 1, 1, 1, 2, 5, 0xffffffff]),
                             n & 0xffffffff, kind, r.choice([5, 7, 1, 0x25, r.randrange(256)]), service, r.choice([0, 0, 0, 2, 3, 4, 9])) + body)
        for _ in range(r.choice([0, 0, 0, 1, 4])):
            p[r.randrange(len(p))] = r.randrange(256)
        if r.random() < .1:
            del p[r.randrange(len(p)):]
        try:
            s.sendto(p, (host(port), port))
        except OSError:
            pass
        n += 1
        if n % 16 == 0:  # answer some of what comes, so that addresses are proven and challenges answered wrongly
            for s in socks:
                try:
                    q = s.recv(20000)
                except OSError:
                    continue
                if len(q) < 28:
                    continue
                f = struct.unpack('>IIIIIBBBBHH', q[:28])
                if f[5] == CHALLENGE:
                    b = u32(2, 0) + r.randbytes(r.choice([0, 10, 200, 1200]))
                    out = header(f[0], f[1], 0, 0, n, RESPONSE, FIRST, f[10], 2) + b
                else:
                    out = header(f[0], f[1], f[2], 0, n, ACK, FIRST, f[10]) + ack(r.choice([1, f[3]]), f[3], f[4], r.choice([1, 7, 6]))
                to = r.choice(SERVICES)[0]
                s.sendto(out, (host(to), to))
            time.sleep(.002)
    print(n, 'packets')
    return 0

def padding():
    """Three octets behind the list of an ACK, and all behind its trailer, are zero; so is the unused tail of names."""
    bad = 0
    for port, service in SERVICES:
        for _ in range(20):
            c = Conn(port, service)
            c.call = 1
            c.send(DATA, FIRST | REQACK, 1, u32(1)[:2])
            c.send(ACK, FIRST, 0, ack(1, 0, c.serial, 6))
            for *h, body in c.packets(.05):
                if h[5] == ACK:
                    n = body[17]
                    tail = body[18 + n:21 + n] + body[21 + n + 16:]
                    if any(tail):
                        bad += 1
                        print(port, service, body.hex())
    rows = call(7003, 52, 527, text('root.cell'))
    name = [struct.unpack('>I', rows[i:i + 4])[0] for i in range(0, 65 * 4, 4)]
    if any(name[len('root.cell'):]):
        bad += 1
        print('a name has a tail', rows.hex())
    print('root.cell' if bytes(name[:9]) == b'root.cell' else rows.hex())
    return bad

def main(a):
    if a[0] == 'call':
        r = call(int(a[1]), int(a[2]), int(a[3]), bytes.fromhex(a[4]) if len(a) > 4 else b'')
        print(r.hex() if isinstance(r, bytes) else f'code {r}')
        return 0
    if a[0] == 'slow':
        return slow(int(a[1]), int(a[2]), int(a[3]), bytes.fromhex(a[4]) if len(a) > 4 else b'')
    if a[0] == 'garbage':
        return garbage(int(a[1]), float(a[2]))
    return {'amplify': amplify, 'padding': padding}[a[0]]()

if __name__ == '__main__':
    sys.exit(1 if main(sys.argv[1:]) else 0)
