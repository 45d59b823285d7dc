"""What the pages carry."""

import re
from importlib.resources import files

from plotly.offline import get_plotlyjs_version

from leverl.report.page import BUNDLE, asset


def test_the_bundle_is_the_version_that_draws_plotlys_figures() -> None:
    found = re.search(r"plotly\.js \(cartesian - minified\) v(\S+)", asset(BUNDLE)[:400])
    assert found is not None
    assert found.group(1) == get_plotlyjs_version()


def test_the_bundle_cannot_end_its_own_script_element() -> None:
    assert "</script" not in asset(BUNDLE).lower()


def test_the_licence_notice_goes_with_it() -> None:
    assert "MIT License" in asset("plotly-LICENSE.txt")
    assert "Plotly Technologies" in asset("plotly-LICENSE.txt")


def test_templates_and_style_are_package_data() -> None:
    folder = files("leverl.report")
    for name in ("assets/page.css", "assets/page.js", "templates/page.html.j2", "templates/blocks.html.j2"):
        assert folder.joinpath(name).is_file()
