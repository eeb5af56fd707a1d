"""`slow_reader.py URL FILE` fetches over HTTP, with a pause behind each 64 KB: five megabytes take five seconds,
however fast the network. (A limit of curl's looks at the clock too rarely to hold a fast transfer up.)"""
import sys, time, urllib.request

with urllib.request.urlopen(sys.argv[1], timeout=30) as there, open(sys.argv[2], "wb") as here:
    while part := there.read(1 << 16):
        here.write(part)
        time.sleep(0.06)
