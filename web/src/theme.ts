// Light or dark theme: the system's, until the user chooses.

const system = matchMedia("(prefers-color-scheme: dark)");
const chosen = () => localStorage.getItem("theme");

function show(): void {
  document.documentElement.dataset.theme = chosen() ?? (system.matches ? "dark" : "light");
  dispatchEvent(new Event("theme"));
}

export function turnTheme(): void {
  const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  if (next === (system.matches ? "dark" : "light")) localStorage.removeItem("theme");
  else localStorage.setItem("theme", next);
  show();
}

system.addEventListener("change", show);
show();
