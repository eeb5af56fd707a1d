"""64 clients at once, each with its own bytes, written and read at the same time."""
import asyncio, hashlib, sys


def content(number):
    block = hashlib.sha256(str(number).encode()).digest()
    return block * (number * 100 + 1)


async def client(number):
    reader, writer = await asyncio.open_connection(sys.argv[1], int(sys.argv[2]))

    async def write():
        writer.write(content(number))
        await writer.drain()
        writer.write_eof()

    _, got = await asyncio.gather(write(), reader.read())
    writer.close()
    return got == content(number)


async def main():
    came_back = await asyncio.wait_for(asyncio.gather(*map(client, range(64))), 60)
    print(sum(came_back), "of", len(came_back), "came back")


asyncio.run(main())
