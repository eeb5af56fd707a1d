"""Sends back what it receives, to any number of clients, until each has half-closed."""
import asyncio, sys


async def echo(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def main():
    server = await asyncio.start_server(echo, "0.0.0.0", int(sys.argv[1]))
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
