"""The program of another, in happybase, that shares a table: 8-byte longs behind the middle bytes of their CRC32.

Arguments: host, port, table. It checks the split keys and the rows that are there, and writes rows of its own.
"""

import sys
import zlib

import happybase

SPLITS = 64
THEIRS = [0, 1, 2, 3, 42, 255, 256, 1000, 1000000, -1, 2**63 - 1, -(2**63)]
OURS = [5, -5, 12345678901]


def key(number):
    long = number.to_bytes(8, "big", signed=True)
    return zlib.crc32(long).to_bytes(8, "big")[5:7] + long


connection = happybase.Connection(sys.argv[1], int(sys.argv[2]))
table = connection.table(sys.argv[3])

assert key(1).hex() == "25ef0000000000000001", key(1)
starts = sorted(region["start_key"] for region in table.regions())
assert starts == [b""] + [(place << 58).to_bytes(8, "big") for place in range(1, SPLITS)], starts

rows = dict(table.scan())
assert len(rows) == len(THEIRS), rows
for number in THEIRS:
    assert rows[key(number)] == {b"cf:value": ("title %d é" % number).encode()}, number
    assert table.row(key(number)) == rows[key(number)], number
assert [row for row, _ in table.rows([key(number) for number in THEIRS])] == [key(number) for number in THEIRS]

with table.batch() as batch:
    for number in OURS:
        batch.put(key(number), {b"cf:value": ("from python %d" % number).encode()})
table.put(key(1), {b"cf:value": b"overwritten"})
table.delete(key(2))
print("done")
