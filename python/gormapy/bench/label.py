"""Writing and reading of sizes."""


def label(size):
    """Return a number of bytes as text."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def sizes(text):
    """Read "1:4194304", powers of two from one to the other, or "8,65536", or one of both."""
    try:
        if ":" in text:
            low, high = (int(part) for part in text.split(":"))
            found = [low << i for i in range(64) if low << i <= high]
        else:
            found = [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{text!r} is neither FIRST:LAST nor SIZE,SIZE,... in bytes") from None
    if not found or min(found) < 1:
        raise ValueError(f"{text!r} has no sizes of 1 byte or more")
    return found
