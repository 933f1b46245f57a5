"""python -m phylactery_riskgate.cli: the same command."""

from phylactery_riskgate.cli import main

main()
