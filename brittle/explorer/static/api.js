// Questions to the server that this page came from. All numbers are its answers.

function post(name, body, signal) {
  const sent = fetch(name, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), signal });
  return sent.catch((error) => { throw error.name === "AbortError" ? error : new Error("the explorer has ended: start `brittle explore` again"); });
}

export async function ask(name, body = {}) {
  const answer = await post(name, body);
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error);
  return found;
}

// One object after another, as they are computed; `signal` ends the work.
export async function* stream(name, body, signal) {
  const answer = await post(name, body, signal);
  if (!answer.ok) throw new Error((await answer.json()).error);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const lines = rest.split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const found = JSON.parse(line);
      if (found.error) throw new Error(found.error);
      yield found;
    }
  }
}

// Arrays that are only drawn come in single precision.
export function floats(packed) {
  const text = atob(packed.float32);
  const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

// Runs `work` for the newest arguments only: one at a time, those in between are forgotten.
export function newest(work) {
  let waiting = null, running = null;
  const run = async () => {
    while (waiting) {
      const given = waiting;
      waiting = null;
      await work(...given);
    }
  };
  return (...given) => {
    waiting = given;
    running ??= run().finally(() => { running = null; });
    return running;
  };
}
