"""Puts and gets batches of rows with happybase, one thread for each connection, as its input says line by line.

Arguments: host, port, table. A line of input: put or get, threads, batches of each thread, rows of a batch. A line of output:
rows, seconds, seconds of CPU of this process.
"""

import sys
import threading
import time
import zlib

import happybase

HOST, PORT, TABLE = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode()
VALUE = {b"cf:value": b"123456789012345678901234567890"}
tables = []


def key(number):
    long = number.to_bytes(8, "big", signed=True)
    return zlib.crc32(long).to_bytes(8, "big")[5:7] + long


def work(table, operation, batches):
    for keys in batches:
        if operation == "put":
            with table.batch() as batch:
                for row in keys:
                    batch.put(row, VALUE)
        else:
            assert len(table.rows(keys)) == len(keys)


def measure(operation, threads, each, rows):
    while len(tables) < threads:
        tables.append(happybase.Connection(HOST, PORT).table(TABLE))
    workers = []
    for place in range(threads):
        first = place * each * rows
        batches = [[key(first + batch * rows + row) for row in range(rows)] for batch in range(each)]
        workers.append(threading.Thread(target=work, args=(tables[place], operation, batches)))
    begin, cpu = time.perf_counter(), time.process_time()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return threads * each * rows, time.perf_counter() - begin, time.process_time() - cpu


for line in sys.stdin:
    operation, *numbers = line.split()
    print(*measure(operation, *map(int, numbers)), flush=True)
