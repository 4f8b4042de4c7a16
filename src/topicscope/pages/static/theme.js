// The button that turns light into dark; the choice is kept where the browser allows it.
export const offerTheme = (button) => {
  const root = document.documentElement;
  const wantsDark = matchMedia("(prefers-color-scheme: dark)");
  const stored = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const store = (theme) => { try { localStorage.setItem("theme", theme); } catch { /* private mode */ } };
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : wantsDark.matches);
  const showTheme = () => { button.textContent = isDark() ? "Light theme" : "Dark theme"; };
  const saved = stored();
  if (saved === "light" || saved === "dark") root.dataset.theme = saved;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    store(root.dataset.theme);
    showTheme();
  });
  wantsDark.addEventListener("change", showTheme);
  showTheme();
};
