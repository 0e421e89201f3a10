// The server's token. It is behind the # of the address that the terminal shows, and is stored for this server's address
// (including the port, unlike a cookie), so that the address bar need not show it and other tabs have it.

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

// The same page with another token in its address: browsers do not reload it by themselves.
addEventListener("hashchange", () => { if (location.hash.includes(KEY)) location.reload(); });
