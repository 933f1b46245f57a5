"""Ask for something that needs an approval, show the card, and answer it. Usage: approve.py yes|no [AGENT]."""

from __future__ import annotations

import asyncio
import sys
import uuid

from phylactery_client import PendingApproval, PhylacteryClient

REQUEST = 'write "paid with 4111 1111 1111 1111" to journal.txt'
"""A card number in the text makes the default policies ask."""


def show(card: PendingApproval) -> None:
    """Print what the person is asked."""
    print(f"{card.tool}, risk {card.risk}, expires {card.expire_time}")
    for argument in card.arguments:
        print(f"  {argument.path} = {argument.display}")


async def main(answer: str, target: str) -> None:
    """Ask, show, answer."""
    thread = f"example-{uuid.uuid4().hex[:8]}"
    async with PhylacteryClient(target) as agent:
        asked = await agent.send_message(REQUEST, thread_id=thread)
        print(f"{asked.run.status}: {asked.run.reason}")
        if asked.pending_approval is None:
            raise SystemExit("nothing waits for an approval; is another bundle active?")
        show(asked.pending_approval)
        # the answer is bound to exactly this card: it approves no other call and no other arguments
        done = await agent.answer_approval(asked.pending_approval, thread_id=thread, approve=answer == "yes")
        print(f"{done.run.status}: {done.reply.text}")


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in ("yes", "no"):
        raise SystemExit(__doc__)
    asyncio.run(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1:50051"))
