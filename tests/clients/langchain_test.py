"""LangChain's OpenAI model against our server: pictures, streams, tools, structured answers."""
import base64
import os
import unittest
from typing import Literal

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from served import ANSWER, PICTURE, QUESTION, ROOT, Server

TOOL_TEMPLATE = os.path.join(ROOT, 'tests/parity/goldens/text/templates/qwen_tools.jinja')


@tool
def paint(colour: Literal['red', 'blue'], twice: bool) -> str:
    """Paints something."""
    return f'{colour} {twice}'


class Seen(BaseModel):
    seen: bool
    colour: Literal['red', 'blue']


class LangChain(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.model = ChatOpenAI(model='demo', base_url=cls.server.url, api_key=cls.server.key, max_retries=0)
        with open(PICTURE, 'rb') as f:
            data = base64.b64encode(f.read()).decode()
        cls.about_picture = [HumanMessage(content=[
            {'type': 'image', 'base64': data, 'mime_type': 'image/jpeg'}, {'type': 'text', 'text': QUESTION}])]

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, cls.server.log

    def test_answers_about_a_picture(self):
        answer = self.model.invoke(self.about_picture)
        self.assertEqual(answer.content, ANSWER)
        self.assertGreater(answer.usage_metadata['input_tokens'], 576)

    def test_streams(self):
        self.assertEqual(''.join(chunk.content for chunk in self.model.stream(self.about_picture)), ANSWER)

    def test_structured_answer(self):
        seen = self.model.with_structured_output(Seen, method='json_schema').invoke(self.about_picture)
        self.assertIsInstance(seen, Seen)


class LangChainTools(unittest.TestCase):
    """The demo model knows no tools: behind another family's template its calls are forced by a grammar."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server('--chat-template', TOOL_TEMPLATE)
        cls.model = ChatOpenAI(model='demo', base_url=cls.server.url, api_key=cls.server.key, max_retries=0,
                               max_tokens=200)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, cls.server.log

    def test_calls_a_tool_and_hears_of_it(self):
        bound = self.model.bind_tools([paint], tool_choice='paint')
        answer = bound.invoke('Paint it.')
        self.assertIsInstance(answer, AIMessage)
        call, = answer.tool_calls
        self.assertEqual(call['name'], 'paint')
        self.assertEqual(set(call['args']), {'colour', 'twice'})
        result = ToolMessage(content='done', tool_call_id=call['id'])
        again = bound.invoke([HumanMessage('Paint it.'), answer, result])
        self.assertEqual(len(again.tool_calls), 1)

    def test_streams_calls(self):
        bound = self.model.bind_tools([paint], tool_choice='required', parallel_tool_calls=False)
        whole = None
        for chunk in bound.stream('Paint it.'):
            whole = chunk if whole is None else whole + chunk
        self.assertEqual([c['name'] for c in whole.tool_calls], ['paint'])


if __name__ == '__main__':
    unittest.main()
