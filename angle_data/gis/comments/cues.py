"""The cue words that `scope` walks over: negations, light words, words for the issue itself.

Lower case, without punctuation. Data only.
"""

from __future__ import annotations

from angle_data.gis.comments.references import SELF

_NEGATIONS_TEXT = """
    not never neither nor cannot isnt dont doesnt wasnt arent shouldnt didnt wouldnt cant wont disagree
    doubt doubtful wrongly incorrectly mistakenly erroneously falsely accidentally wrong hardly non nicht
    kein keine keinen keiner pas não nao nunca не ні nie geen niet inte ikke nem değil
"""
_GAP_TEXT = """
    treat regard tag label claim seen que soit sea seja sia che что dass a an the exact exactly real
    really true truly actual actually quite just even simply necessarily strictly entirely think thinks
    believe consider considered feel see say said call agree convinced that this it its it's these those
    there is was were are am be been being to as look looks looked seem seems appear appears sound sounds
    like close closing closed mark marked marking flag flagged treated labelled labeled have has had
    should would could can do does did issue one bug ticket report of in how why case my mine any more
    longer way at all either same complete full direct duplicate i we you they he she anyone please simple
    perfect 100% reason thing problem request i'd i'm considering tracked covered described reported
    handled already currently so yet supposed by mean meant understand get ein eine einen das dies es un
    une uma um una uno el la lo le o os est ce este esto isso isto é è ser является это дубликатом with
    wirklich vraiment realmente jest een det är en et
"""
_NO_GAP_TEXT = """
    es un una el la lo le longer way such creo parece que è o
"""
_THIS_TEXT = """
    this it that these those it's that's this's its mine here ours which issue's everything i've das dies
    dieses hier ce ceci cela c'est esto este esta isso isto questo questa это эта
"""
_NOUNS_TEXT = """
    issue issues bug bugs ticket request report problem feature thread one discussion proposal enhancement
    pr question task topic idea suggestion post item case behaviour behavior error
"""
_POINTING_TEXT = """
    the this that your my our exact underlying root reported described whole general
"""
_LIGHT_TEXT = """
    está están estão fica something what exactly recently just always is was are were be been being has
    have had having get gets got will would should can could may might must to as a an the also already
    now actually really basically essentially clearly obviously definitely probably likely maybe possibly
    perhaps apparently likewise itself themselves indeed simply only exact very most pretty much certainly
    surely i we you they i'm i'll i'd i've we're we'll we've let's lets let me think believe guess feel
    say assume suppose suspect look looks like seem seems appear appears sound sounds considered close
    closing closed mark marking marked flag flagged tag tagged label labelled labeled resolved filed
    opened reported identified treated recognized both all either possible potential another yet again too
    then known more or less kind of sort in fact so and but because since therefore hence thus thanks
    thank sorry ok okay yes yep yeah yup sure hi hello hey please fully completely entirely currently
    still well going go ahead down out up off gonna happening us for this that it see found find noticed
    realized realised discovered figured turns seeing agree confirm confirmed confirming afaict afaik iirc
    iiuc imo imho fyi btw oops ah oh hmm my our same moving we'd described mentioned reporting describing
    requested asked describe mention ask request asking underlying root whole general your triage
    resolving keep keeping work effort effectively technically literally mostly safely best better rather
    honest tracked tracking continue ist sind wird wurde ein eine bereits schon auch daher ich schließe
    als est un une déjà je ferme comme es una ya se lo cierro como cerrando é uma já fechando fecho è
    stato già chiudo eto закрываю как уже
"""

NEGATIONS = frozenset(_NEGATIONS_TEXT.split())
"""Words that deny what follows."""

GAP = frozenset(_GAP_TEXT.split())
"""Words that may stand between a negation and what it denies."""

NO_GAP = frozenset(_NO_GAP_TEXT.split())
"""The same for `no`, which opens a sentence in English and denies in Spanish and Italian."""

THIS_WORDS = frozenset(_THIS_TEXT.split()) | {SELF}
"""Words that stand for the issue itself."""

NOUNS = frozenset(_NOUNS_TEXT.split())
"""What an issue is called; with an article it stands for the issue itself."""

POINTING = frozenset(_POINTING_TEXT.split())
"""What may stand between such a noun and its article."""

LIGHT = frozenset(_LIGHT_TEXT.split())
"""Words that name no subject of their own."""
