/** Asks the API that served the page; its refusals become errors with its own sentences. */
import { signal } from "@preact/signals";

const KEY = "mstcp.token";

/** A refusal (RFC 9457), or no answer at all (status 0). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly detail: string,
    readonly field = "",
    readonly code = "",
  ) {
    super(detail);
  }
}

/** Whether the API asks for a token that the page does not have. */
export const needsToken = signal(false);

/** Why the token that was given last is refused; empty if none was. */
export const tokenRefusal = signal("");

/** The bearer token, kept as long as the tab is open. */
export function bearer(): string | null {
  return sessionStorage.getItem(KEY);
}

/** Use a token from now on; null forgets it. */
export function setBearer(token: string | null): void {
  if (token === null) sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, token);
  tokenRefusal.value = "";
  needsToken.value = token === null;
}

/** Send a request with the token; an answer of 401 asks the person for one. */
export async function send(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  const token = bearer();
  if (token !== null) headers.set("Authorization", `Bearer ${token}`);
  let response: Response;
  try {
    response = await fetch(path, { ...init, headers, cache: "no-store", redirect: "error" });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "there is no answer");
  }
  if (response.ok) return response;
  const refusal = await refusalOf(response);
  if (refusal.status === 401) {
    tokenRefusal.value = token === null ? "" : refusal.detail;
    needsToken.value = true;
  }
  throw refusal;
}

async function refusalOf(response: Response): Promise<ApiError> {
  try {
    const problem = (await response.json()) as { detail?: unknown; field?: unknown; code?: unknown };
    const text = (value: unknown): string => (typeof value === "string" ? value : "");
    return new ApiError(
      response.status,
      text(problem.detail) || response.statusText,
      text(problem.field),
      text(problem.code),
    );
  } catch {
    return new ApiError(response.status, response.statusText || `status ${response.status}`);
  }
}

/** Get a JSON document. */
export async function getJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await (await send(path, signal ? { signal } : {})).json()) as T;
}

/** Send JSON (or nothing) and get JSON (or nothing) back. */
export async function call<T>(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<T> {
  const init: RequestInit = { method, headers };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { ...headers, "Content-Type": "application/json" };
  }
  const response = await send(path, init);
  return (response.status === 204 ? undefined : await response.json()) as T;
}
