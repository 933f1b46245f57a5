/** Uses the page of examples/browser as a person does, and posts what it shows then. Runs in that page. */

const PATIENCE_MS = 120_000;

async function until<T>(find: () => T | null | undefined | false): Promise<T> {
  const limit = performance.now() + PATIENCE_MS;
  for (;;) {
    const value = find();
    if (value) {
      return value;
    }
    if (performance.now() > limit) {
      throw new Error("it did not come about");
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function shown(kind: string): string[] {
  return [...document.querySelectorAll(`#said > .${kind}`)].map((element) => element.textContent ?? "");
}

async function say(text: string): Promise<void> {
  (document.getElementById("text") as HTMLInputElement).value = text;
  (document.getElementById("message") as HTMLFormElement).requestSubmit();
}

async function chat(): Promise<void> {
  await say("eco: <b>hola</b>");
  await until(() => shown("agent").length === 1);
  await say('escribe "hola" en pagina.txt');
  const approve = await until(() => document.querySelector<HTMLButtonElement>(".card button"));
  const before = shown("agent").length;
  approve.click();
  await until(() => shown("agent").length > before);
}

async function refused(): Promise<void> {
  await say("eco: hola");
  await until(() => shown("error").length === 1);
}

async function played(): Promise<unknown> {
  try {
    await (location.search === "?refused" ? refused() : chat());
  } catch (error) {
    return { failed: String(error), html: document.body.innerHTML };
  }
  return { agent: shown("agent"), card: shown("card"), error: shown("error") };
}

await fetch("/result", { method: "POST", body: JSON.stringify(await played()) });

export {};
