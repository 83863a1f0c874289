"""Pictures of ranks on wide and on narrow pages."""

import pytest

from gormapy.magic.transcript import Transcript

PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" width="640" height="100"><rect width="640" height="100"/></svg>'


@pytest.mark.parametrize(("width", "columns"), [(300, 1), (600, 1), (800, 2), (1100, 3)])
def test_pictures_have_columns_where_the_page_is_wide(browser, width, columns):
    seen = Transcript(1000)
    for rank in range(6):
        seen.write(rank, "stdout", f"text of {rank}\n")
        seen.display(rank, {"image/svg+xml": PICTURE, "text/plain": "a picture"}, None, False)
    page = browser.new_page(viewport={"width": width, "height": 900})
    try:
        page.set_content(f'<body style="margin:0">{seen.html(merge=True)}</body>')
        boxes = [block.bounding_box() for block in page.locator(".gormapy-rank").all()]
        assert len(boxes) == 6
        places = [(round(box["y"]), round(box["x"])) for box in boxes]
        assert places == sorted(places) and len({x for _, x in places}) == columns, places
        assert all(box["x"] + box["width"] <= width for box in boxes)
        assert page.evaluate("document.documentElement.scrollWidth") <= width  # each picture scrolls in its column
    finally:
        page.close()
