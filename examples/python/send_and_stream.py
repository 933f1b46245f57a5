"""Send a message and read the answer, then stream the events of a second turn. Usage: send_and_stream.py [AGENT]."""

from __future__ import annotations

import asyncio
import sys

from phylactery_client import PhylacteryClient


async def main(target: str) -> None:
    """Talk to the agent in one thread."""
    async with PhylacteryClient(target) as agent:
        turn = await agent.send_message("echo hello", thread_id="example-send")
        print(f"{turn.run.status}: {turn.reply.text}")
        # a stream that breaks is resumed by the client, with the same request id
        async for event in agent.stream_message("echo once more", thread_id="example-send"):
            print(f"  {event.sequence} {event.kind}")
            if event.kind == "message":
                print(f"  {event.detail.text}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:50051"))
