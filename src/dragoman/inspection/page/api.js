// Requests to the service. An answer other than 200 is thrown as a ServiceError of one line.

const KEY = "dragoman-key";

export class ServiceError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export function setKey(key) {
  sessionStorage.setItem(KEY, key);
}

export async function request(path, body, signal) {
  const headers = { "content-type": "application/json" };
  const key = sessionStorage.getItem(KEY);
  if (key) headers.authorization = `Bearer ${key}`;
  const posted = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  let answer;
  try {
    answer = await fetch(path, { headers, signal, ...posted });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServiceError(0, "unreachable");
  }
  const found = await answer.json().catch(() => null);
  if (!answer.ok) throw new ServiceError(answer.status, found?.error ?? `${answer.status}`);
  return found;
}

// Returns a function that requests, and that cancels its earlier request when it is called again.
export function latestOnly() {
  let controller = null;
  const question = async (path, body) => {
    controller?.abort();
    const mine = (controller = new AbortController());
    try {
      const found = await request(path, body, mine.signal);
      return mine === controller ? found : null;
    } catch (error) {
      if (mine !== controller || error.name === "AbortError") return null;
      throw error;
    }
  };
  question.stop = () => {
    controller?.abort();
    controller = null;
  };
  return question;
}
