"""COUNT clients at once, each with its own bytes, written and read at the same time; client N has N + 1 times
STEP of them."""
import asyncio, hashlib, sys

HOST, PORT, COUNT, STEP = sys.argv[1], *map(int, sys.argv[2:])


def content(number):
    size = STEP * (number + 1)
    return hashlib.shake_128(str(number).encode()).digest(size)


async def client(number):
    reader, writer = await asyncio.open_connection(HOST, PORT)
    sent = content(number)

    async def write():
        writer.write(sent)
        await writer.drain()
        writer.write_eof()

    _, got = await asyncio.gather(write(), reader.read())
    writer.close()
    return got == sent


async def main():
    came_back = await asyncio.wait_for(asyncio.gather(*map(client, range(COUNT))), 60)
    print(sum(came_back), "of", len(came_back), "came back")


asyncio.run(main())
