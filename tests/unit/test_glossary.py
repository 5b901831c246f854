# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""The names of packages and public classes are made of terms of the glossary."""

import ast
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / 'doc' / 'source' / 'contributor' / 'glossary.rst'
PACKAGES = ('tracon_watcher', 'nova_filters', 'tracon_dashboard')
# Terms are indented by three spaces, their definitions by six.
_TERM = re.compile(r' {3}(\S.*)')
_DEFINITION = re.compile(r' {6}(\S.*)')
_ROW = re.compile(r' {3}``(?P<file>[\w/]+\.py)`` ``(?P<name>\w+)``, (?P<term>.+)')
# VMs and URLs in the plural, then abbreviations, words and numbers.
_WORD = re.compile(r'[A-Z]{2,}s(?=[A-Z]|\b)|[A-Z]+(?=[A-Z][a-z]|\b)|[A-Z]?[a-z]+|\d+')


def words(name):
    """Split CamelCase, snake_case and phrases into lower-case words in the singular."""
    return tuple(_singular(word.lower()) for word in _WORD.findall(name.replace('_', ' ')))


def _singular(word):
    if word.endswith('ies'):
        return word[:-3] + 'y'
    if word.endswith(('ches', 'xes', 'sses')):
        return word[:-2]
    return word[:-1] if word.endswith('s') and word[-2:] not in ('is', 'ss', 'us') else word


def made_of(name, known):
    """Say whether a sequence of words is one of known sequences of words.

    :param name: tuple of words
    :param known: set of tuples of words
    """
    return not name or any(name[:length] in known and made_of(name[length:], known)
                           for length in range(1, len(name) + 1))


def section(title):
    """Return the lines of a section of the page."""
    lines = PAGE.read_text(encoding='utf-8').splitlines()
    begin = lines.index(title) + 2
    return lines[begin:next((number - 1 for number, line in enumerate(lines)
                             if number > begin and re.fullmatch('=+', line)), len(lines))]


def terms():
    """Return pairs of term and definition in their order; synonyms share one definition."""
    groups = [([], [])]
    for line in section('Terms')[3:]:
        term, text = _TERM.fullmatch(line), _DEFINITION.fullmatch(line)
        if term and groups[-1][1]:
            groups.append(([], []))
        if term:
            groups[-1][0].append(term[1])
        elif text:
            groups[-1][1].append(text[1])
    return [(name, ' '.join(text)) for names, text in groups for name in names]


def common():
    """Return the common words and phrases."""
    text = ' '.join(line for line in section('Common words')[1:] if ':' not in line
                    and not line.startswith('..'))
    return [phrase.strip() for phrase in text.split(',')]


def renamed():
    """Return the classes that are named by another word, with the term: {(file, name): term}."""
    rows = [_ROW.fullmatch(line) for line in section('Names with another word')]
    return {(row['file'], row['name']): row['term'] for row in rows if row}


def classes():
    """Return file and name of each public class of the product."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob('*.py')):
            for node in ast.parse(path.read_text(encoding='utf-8')).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith('_'):
                    yield str(path.relative_to(ROOT)), node.name


def rooms():
    """Return the name of each package of the product."""
    return sorted({path.parent.name for package in PACKAGES
                   for path in (ROOT / package).rglob('__init__.py')})


class TestWords(unittest.TestCase):

    def test_names_are_split_into_words_in_the_singular(self):
        for name, expected in (
                ('OwnVMsTable', ('own', 'vm', 'table')), ('HTTPError', ('http', 'error')),
                ('nova_filters', ('nova', 'filter')), ('RuntimeAPI', ('runtime', 'api')),
                ('VMPollster', ('vm', 'pollster')), ('ListVM', ('list', 'vm')),
                ('VMs', ('vm',)), ('IOPS ratio', ('iop', 'ratio')), ('Status', ('status',)),
                ('co-resident', ('co', 'resident')), ('policies', ('policy',)),
                ('Patches', ('patch',)), ('AIMD', ('aimd',)), ('Aimd', ('aimd',))):
            with self.subTest(name):
                self.assertEqual(expected, words(name))

    def test_a_phrase_counts_only_as_a_whole(self):
        known = {('host', 'type'), ('host',), ('learner',)}
        self.assertTrue(made_of(('host', 'type', 'learner'), known))
        self.assertTrue(made_of(('host', 'learner'), known))
        self.assertFalse(made_of(('type', 'learner'), known))
        self.assertFalse(made_of(('host', 'tracker'), known))


class TestGlossary(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.terms, self.common, self.renamed = terms(), common(), renamed()
        self.known = {words(one) for one in [*dict(self.terms), *self.common]}

    def test_each_term_stands_once_and_in_order(self):
        names = [term.casefold() for term, _ in self.terms]
        self.assertGreater(len(names), 150)
        self.assertEqual(len(names), len({words(name) for name in names}))
        # A synonym stands below the term that it belongs to.
        first = {definition: name for name, (_, definition) in zip(
            reversed(names), reversed(self.terms))}
        heads = [name.replace('-', '') for name in reversed(first.values())]
        self.assertEqual(sorted(heads), heads)

    def test_each_definition_is_one_sentence_or_two(self):
        for term, definition in self.terms:
            with self.subTest(term):
                self.assertRegex(definition, r'\A[A-Z].*\.\Z')
                self.assertLessEqual(len(re.findall(r'\.(?= |\Z)', definition)), 2)

    def test_no_term_is_a_common_word_too(self):
        both = {words(one) for one in self.common} & {words(term) for term, _ in self.terms}
        self.assertEqual(set(), both)
        self.assertEqual(sorted(self.common), self.common)

    def test_each_package_has_a_name_made_of_terms(self):
        names = rooms()
        self.assertGreater(len(names), 20)
        self.assertEqual([], [name for name in names if not made_of(words(name), self.known)],
                         f'add these nouns to {PAGE.name}')

    def test_each_public_class_has_a_name_made_of_terms(self):
        names = list(classes())
        self.assertGreater(len(names), 300)
        self.assertEqual([], [' '.join(one) for one in names if one not in self.renamed
                              and not made_of(words(one[1]), self.known)],
                         f'add the nouns of these names to {PAGE.name}')

    def test_each_class_with_another_word_exists_and_stands_for_a_term(self):
        self.assertTrue(self.renamed)
        self.assertEqual(set(), set(self.renamed) - set(classes()),
                         f'remove the rows of these classes from {PAGE.name}')
        self.assertEqual([], [one for one in self.renamed if made_of(words(one[1]), self.known)],
                         f'remove the rows of these classes from {PAGE.name}')
        self.assertEqual(set(), set(self.renamed.values()) - set(dict(self.terms)))
