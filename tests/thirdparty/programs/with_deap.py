"""DEAP evolves a population; the workers of schwimmbad judge it."""

import random
import sys

from deap import algorithms, base, creator, tools
from schwimmbad import MPIPool

creator.create("Fitness", base.Fitness, weights=(1.0,))
creator.create("Individual", list, fitness=creator.Fitness)


def ones(individual):
    return (sum(individual),)


with MPIPool() as pool:
    if not pool.is_master():
        pool.wait()
        sys.exit(0)
    random.seed(1)
    box = base.Toolbox()
    box.register("bit", random.randint, 0, 1)
    box.register("individual", tools.initRepeat, creator.Individual, box.bit, 30)
    box.register("population", tools.initRepeat, list, box.individual)
    box.register("evaluate", ones)
    box.register("mate", tools.cxTwoPoint)
    box.register("mutate", tools.mutFlipBit, indpb=0.05)
    box.register("select", tools.selTournament, tournsize=3)
    box.register("map", pool.map)
    population, _ = algorithms.eaSimple(box.population(n=40), box, 0.5, 0.2, 20, verbose=False)
    assert max(sum(individual) for individual in population) >= 27
    print("checked")
