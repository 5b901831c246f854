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

"""Whatever becomes of the text of a snapshot or a delta, it is refused with one kind of error."""

import dataclasses
import json
import math
import unittest

import hypothesis
from hypothesis import strategies
import numpy as np

from tests import synthetic
from tests.unit.placement import snapshots
from tests.unit.placement import test_delta
from tests.unit.placement import test_snapshot
from tracon_watcher import errors
from tracon_watcher.placement import delta
from tracon_watcher.placement import queues
from tracon_watcher.placement import snapshot
from tracon_watcher.placement import snapshot_lines

LEARNT = {synthetic.HOST_TYPE: queues.LearnedParameters(1.5, vm_hours=20.0, coverage=0.6)}
POOLS = {'pool': queues.Pool(0.004)}
#: What may stand in place of anything.
ODD = strategies.one_of(
    strategies.none(), strategies.booleans(), strategies.text(max_size=5),
    strategies.sampled_from([0, -1, 0.5, -0.0, 2 ** 53 + 1, 10 ** 400, 1e308, -1e308, '\ud800',
                             '', [], {}, [[[]]], {'end': 1}, 'local', 'unknown']),
    strategies.lists(strategies.floats(allow_nan=False, allow_infinity=False), max_size=5),
    strategies.integers(2, 200).map(lambda depth: _nested(depth)))


def _nested(depth):
    value = 0
    for _level in range(depth):
        value = [value]
    return value


def places(value, path=()):
    """Yield the path of everything in a JSON value."""
    yield path
    if isinstance(value, (dict, list)):
        for key in (value if isinstance(value, dict) else range(len(value))):
            yield from places(value[key], (*path, key))


def replaced(value, path, other):
    """Return a JSON value with another thing at a path."""
    if not path:
        return other
    copy = value.copy()
    copy[path[0]] = replaced(value[path[0]], path[1:], other)
    return copy


class Fuzzed:
    """Text that is changed in every way there is."""

    def test_flipped_bytes(self):
        @hypothesis.given(strategies.integers(0, len(self.text) - 2), strategies.integers(1, 255))
        @hypothesis.settings(deadline=None, max_examples=150)
        def check(place, mask):
            changed = bytearray(self.text)
            changed[place] ^= mask
            self.refused(bytes(changed))
        check()

    def test_truncated(self):
        @hypothesis.given(strategies.integers(0, len(self.text) - 2))
        @hypothesis.settings(deadline=None, max_examples=100)
        def check(place):
            self.refused(self.text[:place])
        check()

    def test_spliced(self):
        size = len(self.text)

        @hypothesis.given(*[strategies.integers(0, size)] * 3)
        @hypothesis.settings(deadline=None, max_examples=150)
        def check(start, end, to):
            changed = self.text[:to] + self.text[min(start, end):max(start, end)] + self.text[to:]
            hypothesis.assume(changed.rstrip() != self.text.rstrip())
            self.refused(changed)
        check()

    def test_anything_in_place_of_anything_and_sealed_again(self):
        contents = [json.loads(line) for line in self.text.splitlines()][:-1]

        @hypothesis.given(strategies.data())
        @hypothesis.settings(deadline=None, max_examples=400)
        def check(data):
            number = data.draw(strategies.integers(0, len(contents) - 1))
            path = data.draw(strategies.sampled_from(list(places(contents[number]))))
            changed = list(contents)
            changed[number] = replaced(contents[number], path, data.draw(ODD))
            try:
                lines = list(snapshot_lines.sealed(changed))
            except ValueError:
                return
            self.refused_or_sound(lines)
        check()

    def test_lines_left_out_doubled_or_exchanged_and_sealed_again(self):
        contents = [json.loads(line) for line in self.text.splitlines()][:-1]

        @hypothesis.given(strategies.lists(strategies.sampled_from(contents), max_size=8))
        @hypothesis.settings(deadline=None, max_examples=150)
        def check(chosen):
            self.refused_or_sound(list(snapshot_lines.sealed(chosen)))
        check()

    def test_nested_until_the_stack_ends(self):
        first = self.text.splitlines()[0].decode()
        for depth in (100, 900, 990, 1100, 100000):
            for opening, closing in (('[', ']'), ('{"a":', '}')):
                deep = opening * depth + '1' + closing * depth
                for line in (deep, first[:-1] + ',"weather":' + deep + '}',
                             first.replace('"learnt":{', '"learnt":{"deep":' + deep + ',')):
                    with self.assertRaises(errors.TraconError):
                        self.read([line + '\n', *self.text.decode().splitlines(True)[1:]])

    def refused(self, content):
        with self.assertRaises(errors.TraconError):
            try:
                lines = content.decode().splitlines(True)
            except UnicodeDecodeError:
                raise errors.TraconError('what reads bytes says so') from None
            self.read(lines)

    def refused_or_sound(self, lines):
        try:
            found = self.read(lines)
        except errors.TraconError:
            return
        state = found.cluster
        self.assertEqual(len(state.hosts), len(set(state.hosts)))
        self.assertEqual(len(state.uuids), len(set(state.uuids)))
        self.assertTrue(np.isfinite(state.updated_at).all())
        self.assertFalse((state.profiles < 0).any() or np.isinf(state.profiles).any())
        self.assertTrue((np.diff(state.host) >= 0).all())
        self.assertTrue(all(0 <= one.trust <= 1 for one in found.learnt.values()))
        self.assertTrue(all(one.at_once >= 1 for one in found.pools.values()))
        self.assertTrue(math.isfinite(found.maximum_age_seconds))
        snapshots.same(self, found, snapshots.whole(found))


class TestSnapshot(Fuzzed, unittest.TestCase):

    text = ''.join(snapshot.lines(snapshot.Snapshot(
        test_snapshot.small_state(), 300.0, 3, LEARNT, POOLS))).encode()

    def read(self, lines):
        return snapshot.decode(lines, 'it')


class TestDelta(Fuzzed, unittest.TestCase):

    base = test_delta.state()
    text = ''.join(delta.encode(base, dataclasses.replace(test_delta.state(
        (3, 8), ('b', 'aa', 'c'), b1=2 * test_delta.VM, at=1060.0), learnt=LEARNT,
        pools=POOLS))).encode()

    def read(self, lines):
        return delta.apply(self.base, lines, 'it')
