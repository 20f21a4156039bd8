"""How a training of one policy scales with the number of processes: measured, and predicted.

    python -m benchmarks.scaling traffic
    python -m benchmarks.scaling measure --processes 1 2 4 --json scaling.json
    python -m benchmarks.scaling predict scaling.json

``traffic`` counts what the processes send in an update. ``measure`` trains with ``torchrun``.
``predict`` fits a model to these measurements, and prints what it gives for more cores.
"""
