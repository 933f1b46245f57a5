"""Entry point: `python -m phylactery_mcp_proxy`."""

from phylactery_mcp_proxy.cli import main

main()
