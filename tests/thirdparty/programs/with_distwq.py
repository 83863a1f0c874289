"""distwq has a controller that gives calls to workers."""

import distwq


def square(x):
    return x * x


def main(controller):
    for x in range(30):
        controller.submit_call("square", (x,))
    found = [controller.get_next_result()[1] for _ in range(30)]
    assert sorted(found) == [x * x for x in range(30)], found
    print("checked")


distwq.run(fun_name="main" if distwq.is_controller else None, nprocs_per_worker=1)
