"""mpi-list has lists that are distributed over the ranks."""

from mpi_list import Context

context = Context()
numbers = context.iterates(1000)
assert numbers.len() == 1000
assert numbers.reduce(lambda a, b: a + b, 0) == sum(range(1000))
texts = numbers.map(lambda i: f"number {i}").filter(lambda text: text.endswith("7"))
assert texts.head(2) == ["number 7", "number 17"]
collected = texts.collect()
assert (collected is None) == (context.rank != 0)
assert context.rank or len(collected) == 100
last = numbers.scan(lambda a, b: a + b).collect()
assert context.rank or last[-1] == sum(range(1000))
print("checked")
