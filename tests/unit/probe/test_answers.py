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

"""What a generator believes of a sensor's answers."""

import json
import pathlib
import tempfile
import unittest

from tracon_watcher import errors
from tracon_watcher.probe import answers

SECRET = bytes(range(32))
ASKED = '/memory?nonce=00000000000000ff&integers=5'


def body(**changes):
    """Return the body of an answer to ASKED."""
    return json.dumps({'schema': answers.SCHEMA, 'target': ASKED, 'seconds': 0.5,
                       'result': str(255 + 10), **changes}).encode()


class CheckTest(unittest.TestCase):

    def check(self, content, elapsed=0.6, status=200, signature=None):
        if signature is None:
            signature = answers.sign(SECRET, content)
        return answers.check(SECRET, ASKED, status, content, signature, elapsed)

    def refused(self, kind, content, **more):
        with self.assertRaises(answers.BadAnswer) as raised:
            self.check(content, **more)
        self.assertEqual(kind, raised.exception.kind)
        return str(raised.exception)

    def test_a_good_answer_tells_the_seconds_of_the_work(self):
        self.assertEqual(0.5, self.check(body()))

    def test_another_secret_or_no_signature(self):
        self.refused('unsigned', body(), signature='')
        self.refused('unsigned', body(), signature='ü')
        self.refused('unsigned', body(), signature=answers.sign(b'x' * 32, body()))

    def test_what_the_sensor_refuses_is_told(self):
        self.assertIn('403', self.refused('refused', b'no', status=403))

    def test_garbage(self):
        for content in (b'', b'\xff', b'[1]', b'{"a": 1}', body(seconds=None), body(seconds='x'),
                        body(result='1.5'), body(schema='tracon-sensor/2'), b'[' * 100_000):
            with self.subTest(content[:40]):
                self.refused('garbage', content)

    def test_an_answer_to_an_earlier_request(self):
        self.refused('garbage', body(target=ASKED.replace('ff', 'fe')))

    def test_work_that_was_not_done(self):
        self.assertIn('266 instead of 265', self.refused('garbage', body(result='266')))

    def test_not_a_time(self):
        for content in (body(seconds=float('nan')), body(seconds=float('inf'))):
            self.refused('garbage', content)

    def test_more_time_than_has_passed(self):
        self.refused('lies', body(), elapsed=0.4)

    def test_too_fast_to_be_true(self):
        self.refused('too fast', body(seconds=0.0))
        self.refused('too fast', body(seconds=-1.0))


class ExpectedTest(unittest.TestCase):
    """What the result of a request is, without doing the work."""

    def test_the_generator_of_random_numbers_jumps(self):
        for amount in (1, 2, 3, 1000, 4097):
            state = 0xfedcba9876543210
            for _ in range(amount):
                state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            self.assertEqual(
                state, answers.expected(f'/connection?nonce=fedcba9876543210&work={amount}'))

    def test_a_sum_wraps(self):
        self.assertEqual(9, answers.expected('/memory?nonce=ffffffffffffffff&integers=5'))

    def test_blocks_are_counted(self):
        self.assertEqual(7, answers.expected('/write?nonce=0000000000000001&blocks=7'))

    def test_no_two_requests_are_alike(self):
        self.assertEqual(100, len({answers.target('/read', 'blocks', 1) for _ in range(100)}))


class SecretTest(unittest.TestCase):

    def test_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'secret'
            with self.assertRaisesRegex(errors.InvalidOption, 'No such file'):
                answers.read_secret(path)
            for text in ('', 'ab' * 31, 'xy' * 32):
                path.write_text(text)
                with self.assertRaises(errors.InvalidOption) as raised:
                    answers.read_secret(path)
                self.assertNotIn('xyxy', str(raised.exception))
            path.write_text(SECRET.hex() + '\n')
            self.assertEqual(SECRET, answers.read_secret(path))
