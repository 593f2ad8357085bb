"""English function words: articles, pronouns, prepositions, conjunctions, auxiliaries.

Negations (not, no, never, nor, without, cannot, n't and contractions with n't), comparatives (more, most, few) and
limiting words (very, too, only, but) are excluded, because omitting them changes the meaning.
"""

from __future__ import annotations

_WORDS = """
a an the this that these those
i me my mine myself you your yours yourself yourselves he him his himself she her hers herself it its itself
we us our ours ourselves they them their theirs themselves one oneself
who whom whose which what when where why how
am is are was were be been being have has had having do does did doing done
will would shall should can could may might must ought
and or so if because as while until although though since unless whereas whether than
of at by for with about between into through during before after above below to from up down in out on off over under
again further then once here there along among around upon toward towards within onto via per across behind beside
besides also just both each other another such own same either any some all every
i'm you're he's she's it's we're they're i've you've we've they've i'd you'd he'd she'd we'd they'd
i'll you'll he'll she'll we'll they'll that's there's here's what's who's let's
's 'm 're 've 'll 'd 's
"""
STOPWORDS = frozenset(_WORDS.split())
