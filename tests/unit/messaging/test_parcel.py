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

"""What comes out of a parcel is what went into it, or nothing."""

import base64
import dataclasses
import unittest
from unittest import mock
import zlib

import hypothesis
from hypothesis import strategies

from tracon_watcher import document
from tracon_watcher import errors
from tracon_watcher.messaging import chunked_payload
from tracon_watcher.messaging import protocol


def sent(made):
    """Return the bytes that come of a parcel's pieces."""
    return b''.join(chunked_payload.piece(made.chunk(index),
                                          'it') for index in range(made.label.chunks))


def label(**changes):
    """Return the fields of a label."""
    return document.Fields('it', {**chunked_payload.ChunkedPayload(['a\n']).label.to_document(),
                                  **changes})


class TestParcel(unittest.TestCase):

    @hypothesis.given(strategies.lists(strategies.text(
        strategies.characters(exclude_characters='\n', codec='utf-8'), min_size=1)))
    def test_lines_come_back(self, texts):
        made = chunked_payload.ChunkedPayload(text + '\n' for text in texts)
        found = list(chunked_payload.lines(made.label, sent(made), 'it'))
        self.assertEqual([text + '\n' for text in texts], found)

    def test_a_large_one_is_cut_so_that_each_piece_fits_into_a_message(self):
        # What is compressed cannot be compressed once more.
        noise = zlib.compress(b''.join(str(number).encode() for number in range(800000)), 9)
        made = chunked_payload.ChunkedPayload([noise.hex() + '\n'] * 2)
        self.assertGreater(made.label.chunks, 1)
        pieces = [made.chunk(index) for index in range(made.label.chunks)]
        self.assertLess(max(map(len, pieces)), protocol.LARGEST_MESSAGE)
        self.assertEqual([None, None], [made.chunk(-1), made.chunk(made.label.chunks)])
        self.assertEqual([noise.hex() + '\n'] * 2,
                         list(chunked_payload.lines(made.label, sent(made), 'it')))

    def test_a_line_without_an_end_comes_too(self):
        made = chunked_payload.ChunkedPayload(['a\nb'])
        self.assertEqual(['a\n', 'b'], list(chunked_payload.lines(made.label, sent(made), 'it')))

    @hypothesis.given(strategies.data())
    def test_whatever_is_changed_is_refused(self, data):
        made = chunked_payload.ChunkedPayload(['some text\n', 'and more of it\n'])
        changed = bytearray(made.data)
        kind = data.draw(strategies.sampled_from(['flip', 'cut', 'longer']))
        if kind == 'flip':
            changed[data.draw(strategies.integers(0, len(changed) - 1))] ^= data.draw(
                strategies.integers(1, 255))
        elif kind == 'cut':
            del changed[data.draw(strategies.integers(0, len(changed) - 1)):]
        else:
            changed += data.draw(strategies.binary(min_size=1))
        with self.assertRaises(errors.InvalidDocument):
            list(chunked_payload.lines(made.label, bytes(changed), 'it'))
        # Where the label was changed to fit the changed content: some bits mean nothing.
        stated = dataclasses.replace(made.label, packed=len(changed),
                                     sha256=chunked_payload.hashlib.sha256(changed).hexdigest())
        try:
            found = list(chunked_payload.lines(stated, bytes(changed), 'it'))
        except errors.InvalidDocument:
            return
        self.assertEqual(['some text\n', 'and more of it\n'], found)

    def test_a_bomb_is_not_blown_up(self):
        made = chunked_payload.ChunkedPayload(['0' * 10_000_000 + '\n'])
        self.assertLess(made.label.packed, 100_000)
        modest = dataclasses.replace(made.label, size=1000)
        with mock.patch.object(chunked_payload, '_text', autospec=True) as text:
            with self.assertRaisesRegex(errors.InvalidDocument, '1000 bytes were stated'):
                list(chunked_payload.lines(modest, made.data, 'it'))
        text.assert_not_called()

    def test_a_label_that_states_too_much_is_refused(self):
        for changes, said in (({'size': chunked_payload.LARGEST_TEXT + 1}, 'size is'),
                              ({'packed': chunked_payload.LARGEST_PACKED + 1}, 'packed is'),
                              ({'packed': 0}, 'packed is 0'), ({'size': -1}, 'size is -1'),
                              ({'chunks': 7}, 'chunks is 7.*1 pieces'),
                              ({'chunks': 10 ** 400}, 'chunks is 1000'),
                              ({'sha256': 5}, 'sha256 is 5'), ({'size': 'x'}, "size is 'x'")):
            with self.assertRaisesRegex(errors.InvalidDocument, said):
                chunked_payload.PayloadLabel.from_fields(label(**changes))
        self.assertEqual(1, chunked_payload.PayloadLabel.from_fields(label()).chunks)

    def test_what_is_no_piece(self):
        long = base64.b64encode(bytes(protocol.LARGEST_PAYLOAD)).decode()
        for text in (None, 5, 'a', 'a b=', '\u00e4\u00e4\u00e4\u00e4', long, ['x']):
            with self.assertRaises(errors.InvalidDocument):
                chunked_payload.piece(text, 'it')

    def test_bytes_that_are_no_text(self):
        data = zlib.compress(b'\xff\xfe\n')
        stated = chunked_payload.PayloadLabel(3, len(data), 1,
                                              chunked_payload.hashlib.sha256(data).hexdigest())
        with self.assertRaisesRegex(errors.InvalidDocument, 'utf-8'):
            list(chunked_payload.lines(stated, data, 'it'))
