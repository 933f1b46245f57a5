"""Words too common to tell one text from another, in English and Spanish, written as terms are: no accents, lower case.

The lists are closed classes (articles, pronouns, prepositions, conjunctions, auxiliaries), not counts over some corpus.
A word that carries meaning in the other language (son, sea, era, tan; once) is in neither.
"""

from __future__ import annotations

from typing import Final

_ENGLISH = """
a about above after again against all also am an and any are arent as at be because been before being below between
both but by can cannot cant could couldnt did didnt do does doesnt doing dont down during each few for from further
had hadnt has hasnt have havent having he hed hell her here heres hers herself hes him himself his how hows i id if
ill im in into is isnt it its itself ive just lets me more most my myself no nor not now of off on only or other our
ours ourselves out over own same shall she shes should shouldnt so some such than that thats the their theirs them
themselves then there theres these they theyd theyll theyre theyve this those through to too under until up upon us
very was wasnt we wed well were werent weve what whats when where wheres which while who whom whos whose why will with
wont would wouldnt yes you youd youll your youre yours yourself yourselves youve
"""
_SPANISH = """
a al algo algun alguna algunas alguno algunos ante antes aquel aquella aquellas aquello aquellos aqui asi aun aunque
bajo bien cada como con contra cual cuales cualquier cuando cuanta cuantas cuanto cuantos cuya cuyas cuyo cuyos de del
desde donde dos durante e el ella ellas ello ellos en entre eran eras eres es esa esas ese eso esos esta estaba
estaban estado estais estamos estan estar estas este esto estos estoy fue fuera fueron fui ha habeis habia habian han
has hasta hay haya he hemos hubo la las le les lo los mas me mi mia mias mientras mio mios mis muy nada ni no nos
nosotras nosotros nuestra nuestras nuestro nuestros o os otra otras otro otros para pero poco por porque pues que
quien quienes se sean segun ser si sido siempre sin sino sobre sois somos soy su sus suya suyas suyo suyos tal tambien
tampoco tanta tantas tanto tantos te tendra tener tengo ti tiene tienen toda todas todo todos tu tus tuya tuyas tuyo
tuyos u un una unas uno unos vosotras vosotros vuestra vuestras vuestro vuestros y ya yo
"""

STOP_WORDS: Final = frozenset(_ENGLISH.split()) | frozenset(_SPANISH.split())
