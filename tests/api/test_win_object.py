"""Windows as Python objects: memory, attributes, names, pickling, and what is left of them after Free."""

from support.programs import beside

program = beside(__file__)


def test_memory_and_attributes(ranks):
    ranks(
        2,
        program.memory_and_attributes,
    )


def test_pickling(ranks):
    ranks(
        1,
        program.pickling,
    )


def test_attributes_of_the_program_and_names(ranks):
    ranks(
        2,
        program.attributes_of_the_program_and_names,
    )


def test_what_is_left_of_a_freed_window(ranks):
    ranks(
        2,
        program.what_is_left_of_a_freed_window,
    )
