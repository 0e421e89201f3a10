export function by<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found as T;
}

export function make<K extends keyof HTMLElementTagNameMap>(tag: K, cls = "", text = ""): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (cls) made.className = cls;
  if (text) made.textContent = text;
  return made;
}

// A row of buttons, one of which is pressed.
export function choice(into: HTMLElement, names: string[], chosen: (name: string) => void): (name: string) => void {
  const buttons = names.map((name) => {
    const b = make("button", "", name);
    b.type = "button";
    b.onclick = () => { show(name); chosen(name); };
    return b;
  });
  const show = (name: string) => buttons.forEach((b) => b.setAttribute("aria-pressed", String(b.textContent === name)));
  into.replaceChildren(...buttons);
  return show;
}

// A colour of the style sheet for drawing on a canvas; and 1 in the dark theme.
export const css = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const dark = (): number => Number((document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "")) === "dark");
