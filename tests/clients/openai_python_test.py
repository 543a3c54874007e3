"""OpenAI's Python client against our server: what its users do, and what they count on when it goes wrong."""
import json
import signal
import threading
import time
import unittest

import openai

from served import ANSWER, QUESTION, Server, picture_uri


def about_picture(question=QUESTION):
    return [{'role': 'user', 'content': [{'type': 'image_url', 'image_url': {'url': picture_uri()}},
                                         {'type': 'text', 'text': question}]}]


TEXT = [{'role': 'user', 'content': 'What is it?'}]


class OpenAiPython(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server('--alias', 'gpt-demo', '--max-body', '1MiB')
        cls.client = openai.OpenAI(base_url=cls.server.url, api_key=cls.server.key, max_retries=0)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        assert cls.server.stop() == 0, cls.server.log

    def create(self, **fields):
        return self.client.chat.completions.create(**{'model': 'demo', 'messages': TEXT} | fields)

    def test_lists_models(self):
        self.assertEqual([m.id for m in self.client.models.list()], ['demo', 'gpt-demo'])

    def test_answers_about_a_picture(self):
        answer = self.create(messages=about_picture())
        self.assertEqual(answer.choices[0].message.content, ANSWER)
        self.assertEqual(answer.choices[0].finish_reason, 'stop')
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens)
        self.assertTrue(answer._request_id.startswith('req_'))

    def test_streams(self):
        chunks = list(self.create(messages=about_picture(), model='gpt-demo', stream=True,
                                  stream_options={'include_usage': True}))
        self.assertEqual(''.join(c.choices[0].delta.content or '' for c in chunks if c.choices), ANSWER)
        self.assertEqual(chunks[0].choices[0].delta.role, 'assistant')
        self.assertEqual(chunks[-2].choices[0].finish_reason, 'stop')
        self.assertEqual(chunks[-1].choices, [])
        self.assertGreater(chunks[-1].usage.prompt_tokens, 576)

    def test_draws_several_answers_by_seed(self):
        def texts():
            answer = self.create(n=3, seed=7, temperature=1.5, max_tokens=8)
            return [c.message.content for c in answer.choices]
        self.assertEqual(len(texts()), 3)
        self.assertEqual(texts(), texts())

    def test_keeps_to_a_schema(self):
        schema = {'type': 'object', 'properties': {'seen': {'type': 'boolean'}}, 'required': ['seen'],
                  'additionalProperties': False}
        answer = self.create(messages=about_picture(), response_format={
            'type': 'json_schema', 'json_schema': {'name': 'answer', 'strict': True, 'schema': schema}})
        self.assertIsInstance(json.loads(answer.choices[0].message.content)['seen'], bool)

    def test_tells_logprobs(self):
        answer = self.create(messages=about_picture(), logprobs=True, top_logprobs=3)
        tokens = answer.choices[0].logprobs.content
        self.assertEqual(''.join(t.token for t in tokens), ANSWER)
        self.assertEqual(bytes(b for t in tokens for b in t.bytes).decode(), ANSWER)
        self.assertTrue(all(len(t.top_logprobs) == 3 for t in tokens))

    def test_completes_a_prompt(self):
        answer = self.client.completions.create(model='demo', prompt='a red', max_tokens=4, echo=True)
        self.assertTrue(answer.choices[0].text.startswith('a red'))

    def test_raises_what_each_mistake_is(self):
        with self.assertRaises(openai.NotFoundError) as e:
            self.create(model='other')
        self.assertIn('gpt-demo', str(e.exception))
        with self.assertRaises(openai.BadRequestError) as e:
            self.create(temperature=-1)
        self.assertEqual(e.exception.param, 'temperature')
        self.assertEqual(e.exception.type, 'invalid_request_error')
        with self.assertRaises(openai.BadRequestError) as e:
            self.create(messages=[{'role': 'user', 'content': [
                {'type': 'image_url', 'image_url': {'url': 'http://127.0.0.1:9/a.png'}}]}])
        self.assertEqual(e.exception.param, 'messages[0].content[0].image_url.url')
        with self.assertRaises(openai.BadRequestError) as e:
            self.create(tools=[{'type': 'function', 'function': {'name': 'f'}}])
        self.assertEqual(e.exception.param, 'tools')
        with self.assertRaises(openai.APIStatusError) as e:
            self.create(messages=[{'role': 'user', 'content': 'a' * (1 << 20)}])
        self.assertEqual(e.exception.status_code, 413)
        with self.assertRaises(openai.AuthenticationError):
            openai.OpenAI(base_url=self.server.url, api_key='wrong', max_retries=0).models.list()

    def test_leaves_in_the_middle_of_a_stream(self):
        for _ in range(8):
            with self.create(stream=True, extra_body={'ignore_eos': True}) as stream:
                next(iter(stream))
        self.assertEqual(self.create(messages=about_picture()).choices[0].message.content, ANSWER)

    def test_many_threads_share_a_client(self):
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(
            self.create(messages=about_picture()).choices[0].message.content)) for _ in range(12)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(answers, [ANSWER] * 12)


class Tools(unittest.TestCase):
    """The demo model knows no tools: behind another family's template its calls are forced by a grammar."""

    TOOLS = [{'type': 'function', 'function': {'name': 'paint', 'strict': True, 'parameters': {
        'type': 'object', 'properties': {'colour': {'enum': ['red', 'blue']}}, 'required': ['colour'],
        'additionalProperties': False}}}]

    @classmethod
    def setUpClass(cls):
        cls.server = Server('--chat-template', 'tests/parity/goldens/text/templates/qwen_tools.jinja')
        cls.client = openai.OpenAI(base_url=cls.server.url, api_key=cls.server.key, max_retries=0)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        assert cls.server.stop() == 0, cls.server.log

    def test_calls_the_tool_that_is_named_and_takes_its_result(self):
        fields = {'model': 'demo', 'tools': self.TOOLS,
                  'tool_choice': {'type': 'function', 'function': {'name': 'paint'}}}
        message = self.client.chat.completions.create(messages=TEXT, **fields).choices[0].message
        self.assertIsNone(message.content)
        call, = message.tool_calls
        self.assertIn(json.loads(call.function.arguments)['colour'], ['red', 'blue'])
        result = {'role': 'tool', 'tool_call_id': call.id, 'content': 'done'}
        again = self.client.chat.completions.create(messages=[*TEXT, message, result], **fields)
        self.assertEqual(again.choices[0].message.tool_calls[0].function.name, 'paint')

    def test_streams_a_required_call(self):
        with self.client.chat.completions.stream(model='demo', messages=TEXT, tools=self.TOOLS,
                                                 tool_choice='required', parallel_tool_calls=False) as stream:
            choice = stream.get_final_completion().choices[0]
        self.assertEqual(choice.finish_reason, 'tool_calls')
        self.assertEqual([c.function.name for c in choice.message.tool_calls], ['paint'])


class Ending(unittest.TestCase):
    def test_told_to_end_it_finishes_what_it_has_begun(self):
        server = Server()
        with openai.OpenAI(base_url=server.url, api_key=server.key, max_retries=0) as client:
            streams = [client.chat.completions.create(model='demo', messages=TEXT, stream=True, max_tokens=1500,
                                                      extra_body={'ignore_eos': True}) for _ in range(4)]
            for stream in streams:
                next(stream)
            server.process.terminate()
            for stream in streams:
                self.assertEqual([c.choices[0].finish_reason for c in stream][-1], 'length')
        self.assertEqual(server.stop(), 0, server.log)

    def test_a_key_file_is_read_again(self):
        server = Server()
        with openai.OpenAI(base_url=server.url, api_key=server.key, max_retries=0) as client:
            client.models.list()
            with open(server.keys.name, 'w') as f:
                f.write(f'other blake3:{"0" * 64}\n')
            server.process.send_signal(signal.SIGHUP)
            with self.assertRaises(openai.AuthenticationError):
                for _ in range(200):
                    client.models.list()
                    time.sleep(.01)
        self.assertEqual(server.stop(), 0, server.log)


if __name__ == '__main__':
    unittest.main()
