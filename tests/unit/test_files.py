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

"""Files are written whole, or what was there stays and nothing is left behind."""

import errno
import os
import pathlib
from unittest import mock

from tests.unit import folder
from tracon_watcher import document
from tracon_watcher import errors
from tracon_watcher import files


class TestReplaced(folder.FolderCase):

    def setUp(self):
        super().setUp()
        self.path = self.folder / 'file'
        self.path.write_text('old')

    def write(self, path=None, text='new'):
        with files.replaced(path or self.path) as stream:
            stream.write(text)

    def left(self):
        return {path.name: path.read_text() for path in self.folder.rglob('*') if path.is_file()}

    def test_takes_the_place_of_the_old_one(self):
        self.write()
        self.assertEqual({'file': 'new'}, self.left())

    def test_what_cannot_be_written_is_named_and_nothing_is_left(self):
        (self.folder / 'there').mkdir()
        for path, reason in ((self.folder / 'no' / 'file', 'No such file'),
                             (self.path / 'file', 'Not a directory'),
                             (self.folder / 'there', 'Is a directory'),
                             (self.folder / ('x' * 300), 'name too long')):
            with self.assertRaisesRegex(errors.InvalidDocument,
                                        f'the file is .*{reason}.*: cannot be written; name a'):
                self.write(path)
            self.assertEqual({'file': 'old'}, self.left())
        with self.assertRaises(errors.InvalidDocument):
            self.write(pathlib.Path(''))

    def test_a_disk_that_is_full(self):
        with mock.patch.object(os, 'fsync', autospec=True,
                               side_effect=OSError(errno.ENOSPC, 'No space left on device')):
            with self.assertRaisesRegex(errors.InvalidDocument, 'file: the file is .No space'):
                self.write()
        self.assertEqual({'file': 'old'}, self.left())

    def test_a_fault_in_between(self):
        with self.assertRaises(ValueError):
            document.write({'seconds': float('nan')}, self.path)
        self.assertEqual({'file': 'old'}, self.left())


class TestText(folder.FolderCase):

    def test_a_document_with_a_byte_order_mark(self):
        path = self.folder / 'document.json'
        path.write_bytes(b'\xef\xbb\xbf{"seconds": 1.5}')
        self.assertEqual(1.5, document.read(path, 'tracon').number('seconds'))
