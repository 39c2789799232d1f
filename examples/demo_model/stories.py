# SPDX-License-Identifier: Apache-2.0
"""story(): one small story, told by one of the plots, with a title."""
import re

from plots_home import HOME, WITH_TOY
from plots_road import ROAD
from teller import Teller

PLOTS = HOME + ROAD


def tell(random, want=None):
    """A finished Teller with title and text. want may name what the story must be about: noun (of TOYS) and
    adjective, species, name."""
    while True:
        t = Teller(random)
        title = random.choice(WITH_TOY if want and "noun" in want else PLOTS)(t, want)
        title = re.sub(r"\{o\.(Noun|Adjective)\}", lambda m: getattr(t.names["o"], m.group(1).lower()).title(), title)
        title = re.sub(r"\{c\.Species\}", lambda m: t.names["c"].species.title(), title)
        t.title = t.fill(title)
        t.story = t.text()
        if 600 < len(t.story) < 2400:
            return t


def story(random, want=None):
    t = tell(random, want)
    return t.title, t.story
