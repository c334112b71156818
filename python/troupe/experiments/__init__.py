"""Experiments in virtual time: task graphs and models on clusters that need not exist, by the engine's own plans.

>>> import troupe
>>> from troupe.experiments import Cluster, TaskGraph, compare, simulate
>>> @troupe.policy
... def fastest(problem):
...     return problem.times.argmin(axis=1)
>>> cluster = Cluster.of_speeds([4e9, 1e9, 1e9], bytes_per_s=1e8)
>>> result = simulate(TaskGraph.generate("cholesky", tiles=6), cluster, policy=fastest)
>>> result.makespan, result.schedule["device"]
>>> compare([TaskGraph.generate("layers", seed=s) for s in range(30)], cluster, ["heft", "peft", fastest])

Times are seconds, sizes bytes, work floating-point operations. What is simulated, and how exactly, is said in
docs/howto/experiments.md. Equal arguments give equal results. pandas is used where it is installed.
"""
from troupe.experiments._comparison import Comparison, compare
from troupe.experiments._episode import Episode, play
from troupe.experiments._simulation import Simulation, simulate
from troupe.experiments._workload import Cluster, TaskGraph

__all__ = ["Cluster", "Comparison", "Episode", "Simulation", "TaskGraph", "compare", "play", "simulate"]
