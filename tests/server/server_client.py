# SPDX-License-Identifier: Apache-2.0
"""The server as a process, and a client of it as plain as HTTP and JSON allow."""
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

# Answers that last until they are cancelled, however late a busy machine does that: they are hours of work.
ENDLESS = {"prompt": "Once upon a time", "max_tokens": 1000000, "n": 8, "ignore_eos": True}
WITH_ENDLESS = ("--max-tokens", "1000000", "--set", "context_policy=shift,4")


def large_schema(number, items=1500):
    """A request's response_format that takes long to read; another one for each number."""
    values = [{f"a{i}": {"b": [number, f"x{i * 7}"]}} for i in range(items)]
    return {"type": "json_schema", "json_schema": {"name": "large", "schema": {"enum": values}}}


class Server:
    """A server on a free port with the draft model. Ends with its `with` block, and must end well."""

    def __init__(self, program, source, *options):
        model = os.path.join(source, "examples/demo_model/draft.gguf")
        self.complaints = tempfile.TemporaryFile()  # a pipe that nobody reads would fill up with what sanitizers find
        self.process = subprocess.Popen([program, "-m", model, "--port", "0", *options], stdout=subprocess.PIPE,
                                        stderr=self.complaints)
        line = self.process.stdout.readline().decode()
        assert line.startswith("listening at http://127.0.0.1:"), line + self.ended()
        self.port = int(line.split(":")[2].split(",")[0])

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.stop()
        else:
            self.process.kill()
            sys.stderr.write(self.ended())

    def stop(self, number=signal.SIGTERM):
        """Sends the signal; returns the seconds it took."""
        start = time.monotonic()
        self.process.send_signal(number)
        said = self.ended()
        seconds = time.monotonic() - start
        assert (self.process.returncode, said) == (0, ""), f"exit code {self.process.returncode}\n{said}"
        return seconds

    def ended(self):
        """Waits for its end; returns what it has printed since its first line."""
        out, _ = self.process.communicate(timeout=120)
        self.complaints.seek(0)
        with self.complaints as complaints:
            return (out + complaints.read()).decode(errors="replace")

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def raw(self, data):
        """Sends bytes as they are, says that no more will come, and returns what comes back, without interim responses:
        with them the server finds out whether one who sends no more still listens."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=120) as connection:
            try:
                connection.sendall(data)
                try:
                    connection.shutdown(socket.SHUT_WR)
                except OSError:  # refused, and closed meanwhile
                    pass
                parts = []
                while part := connection.recv(65536):
                    parts.append(part)
            except ConnectionError:
                pass
            return b"".join(parts).replace(b"HTTP/1.1 100 Continue\r\n\r\n", b"")

    def get(self, path, method="GET"):
        connection = self.connect()
        connection.request(method, path)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response.status, body

    def json(self, path):
        status, body = self.get(path)
        assert status == 200, (status, body)
        return json.loads(body)

    def metric(self, name):
        for line in self.get("/metrics")[1].decode().splitlines():
            if line.rsplit(" ", 1)[0] == "generate_" + name:
                return float(line.rsplit(" ", 1)[1])
        return 0

    def post(self, path, body, headers=None):
        """Status and the parsed answer."""
        connection = self.connect()
        data = body if isinstance(body, (bytes, str)) else json.dumps(body)
        connection.request("POST", path, data, {"Content-Type": "application/json", **(headers or {})})
        response = connection.getresponse()
        text = response.read()
        connection.close()
        return response.status, json.loads(text)

    def events(self, path, body, leave_after=None):
        """The objects of a stream; all of them, or the first few and then away."""
        connection = self.connect()
        connection.request("POST", path, json.dumps({**body, "stream": True}))
        response = connection.getresponse()
        assert response.status == 200, (response.status, response.read())
        assert response.headers["Content-Type"] == "text/event-stream"
        events, done = [], False
        while leave_after is None or len(events) < leave_after:
            line = response.readline()
            if not line:
                break
            assert not done and line.startswith(b"data: ") and line.endswith(b"\n"), line
            assert response.readline() == b"\n"
            if line == b"data: [DONE]\n":
                done = True
            else:
                events.append(json.loads(line[6:]))
        connection.sock and connection.sock.close()
        response.close()
        connection.close()
        assert done or leave_after is not None or "error" in events[-1], events[-1]
        return events

    def wait_until_idle(self, seconds=120):
        """Until nothing runs or waits and no client is being answered."""
        end = time.monotonic() + seconds
        while True:
            health = self.json("/health")
            figures = [health[key] for key in ("running", "waiting", "clients")]
            if figures == [0, 0, 0]:
                return
            assert time.monotonic() < end, health
            time.sleep(0.01)


def of_answer(answer):
    """What a whole answer says: for each choice its text and its end."""
    return [(choice["text"] if "text" in choice else choice["message"]["content"], choice["finish_reason"])
            for choice in answer["choices"]]


def of_events(events):
    """The same from a stream, with the order of its events checked."""
    texts, ends = {}, {}
    for event in events:
        for choice in event["choices"]:
            index = choice["index"]
            assert index not in ends, "an event after the end"
            if "delta" in choice:
                if index not in texts:
                    assert choice["delta"] == {"role": "assistant", "content": ""}, choice
                texts[index] = texts.get(index, "") + choice["delta"].get("content", "")
            else:
                texts[index] = texts.get(index, "") + choice["text"]
            if choice["finish_reason"] is not None:
                ends[index] = choice["finish_reason"]
    assert set(texts) == set(ends) == set(range(len(texts)))
    return [(texts[index], ends[index]) for index in range(len(texts))]
