// Descriptions of the driving programs, for the list and while they drive. Others are shown by name.

const WORDS: Record<string, [string, string]> = {
  dig: ["dig a hole", "digs, swings and dumps by itself"],
  resolved: ["paper's run", "does the paper's RESOLVED run: still, then out and round, then still"],
};

export const listed = (name: string): string => WORDS[name]?.[0] ?? name;
export const told = (name: string): string => WORDS[name]?.[1] ?? `is driven by "${name}"`;
