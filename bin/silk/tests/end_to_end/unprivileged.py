"""Gives up its rights before its first socket, is refused a low port, and then sends back what it receives at a high one."""
import asyncio, os, socket, sys
from echo_server import main

os.setgroups([])
os.setgid(65534)
os.setuid(65534)
for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:
    with socket.socket(socket.AF_INET, kind) as low:
        try:
            low.bind(("0.0.0.0", 81))
            sys.exit("it was given a low port")
        except PermissionError:
            pass
asyncio.run(main())
