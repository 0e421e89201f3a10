// The server's token. It comes behind the # of the address that the terminal shows, and is kept for this server's address
// (port included, which a cookie would not be), so that the address bar need not show it and other tabs know it too.

const KEY = "token";

function kept(): string {
  const given = new URLSearchParams(location.hash.slice(1)).get(KEY);
  if (given) {
    localStorage.setItem(KEY, given);
    history.replaceState(null, "", location.pathname + location.search);
  }
  return localStorage.getItem(KEY) ?? "";
}

export const token = kept();

// The same page with another token in its address: browsers do not load it anew by themselves.
addEventListener("hashchange", () => { if (location.hash.includes(KEY)) location.reload(); });
